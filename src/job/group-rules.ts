/** What holds for each group of a queue: what is said of its name, else of a pattern that it fits, else of all. */
import {
  type GroupLimits,
  type GroupOrder,
  type GroupOverride,
  type GroupOverrides,
  type GroupSettings,
  WEIGHTS,
} from './group';

/** By name or pattern. No two patterns fit the same name. */
class Named<T> {
  private readonly names = new Map<string, T>();
  private readonly beginnings = new Map<string, T>();
  private readonly lengths: readonly number[];

  constructor(values: Readonly<Record<string, T>> | undefined) {
    for (const [name, value] of Object.entries(values ?? {})) {
      if (name.endsWith('*')) this.beginnings.set(name.slice(0, -1), value);
      else this.names.set(name, value);
    }
    this.lengths = [...new Set(Array.from(this.beginnings.keys(), ({ length }) => length))];
  }

  of(group: string): T | undefined {
    return this.names.get(group) ?? this.fitting(group);
  }

  private fitting(group: string): T | undefined {
    for (const length of this.lengths) {
      const found = this.beginnings.get(group.slice(0, length));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** What a queue says of its groups, ready to be asked about one. */
export class GroupRules {
  readonly order: GroupOrder;
  readonly boundConcurrency: boolean;
  readonly boundWaiting: boolean;
  /** The shortest and the longest period of a rate, ms; undefined: no group has a rate. */
  readonly periods: { shortest: number; longest: number } | undefined;
  private readonly base: GroupLimits;
  private readonly limits: Named<GroupLimits>;
  private readonly weights: Named<number>;
  private readonly overrides: ReadonlyMap<string, GroupOverride>;

  /** @param overridden what operators say of single groups */
  constructor({ order, overflow: _, limits, weights, ...base }: GroupSettings, overridden: GroupOverrides = {}) {
    this.order = order;
    this.base = base;
    const own = Object.entries(limits ?? {});
    const pattern = new Named(Object.fromEntries(own.filter(([name]) => name.endsWith('*'))));
    // Members that a name leaves out are those of its pattern.
    this.limits = new Named(
      Object.fromEntries(own.map(([name, limits]) => [name, { ...base, ...pattern.of(name), ...limits }])),
    );
    this.weights = new Named(weights);
    this.overrides = new Map(
      Object.entries(overridden).map(([group, override]) => [group, { ...this.ownLimitsOf(group), ...override }]),
    );
    const all = [base, ...own.map(([, limits]) => limits), ...this.overrides.values()];
    this.boundConcurrency = all.some(({ concurrency }) => concurrency !== undefined);
    this.boundWaiting = all.some(({ max_waiting }) => max_waiting !== undefined);
    const periods = all.flatMap(({ rate }) => rate?.period_ms ?? []);
    this.periods = periods.length === 0 ? undefined : { shortest: Math.min(...periods), longest: Math.max(...periods) };
  }

  limitsOf(group: string): GroupLimits {
    return this.overrides.get(group) ?? this.ownLimitsOf(group);
  }

  /** What limits a group, without operators' overrides. */
  private ownLimitsOf(group: string): GroupLimits {
    return this.limits.of(group) ?? this.base;
  }

  get overridden(): Iterable<string> {
    return this.overrides.keys();
  }

  isPaused(group: string): boolean {
    return this.overrides.get(group)?.paused === true;
  }

  weightOf(group: string): number {
    return this.overrides.get(group)?.weight ?? this.weights.of(group) ?? WEIGHTS.default;
  }
}
