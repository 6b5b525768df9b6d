/** Which job types the handlers of one queue take, and the explanation for a type that none of them takes. */
import { ownsQueue, type TargetConfig, takesFrom, targetFor } from '../../../dispatch/config';
import { didYouMean } from '../../../job/near-miss';
import { quote } from '../../../job/text';
import type { Handlers } from '../../store/handlers';
import { bodyOf, type JobRow, mayNameUrl } from '../../store/job-row';
import { connectionsLeft, PushTarget } from './target';

/** Hints remembered, so that a producer of very many jobs does not pay for each. */
const MAX_HINTS = 1_000;

export class HandledTypes implements Handlers {
  private readonly hints = new Map<string, string>();
  readonly targets: readonly PushTarget[];
  private readonly isOwned: boolean;
  private readonly takesUrls: boolean;

  /**
   * @param configs every target of the deployment
   * @param longestPauseMs limit of a target's pause after errors; absent: as in production
   */
  constructor(
    private readonly queue: string,
    readonly configs: readonly TargetConfig[],
    longestPauseMs?: number,
  ) {
    this.targets = configs
      .filter((config) => takesFrom(config, queue))
      .map((config) => new PushTarget(config, longestPauseMs));
    this.isOwned = ownsQueue(configs, queue);
    this.takesUrls = configs.some(({ takesUrl }) => takesUrl !== undefined);
  }

  get pushesAny(): boolean {
    return this.targets.length > 0;
  }

  isPushed(type: string, bodies: readonly string[]): boolean {
    if (this.isOwned || targetFor(this.configs, this.queue, type) !== undefined) return true;
    return this.takesUrls && bodies.some(mayNameUrl);
  }

  targetOf(type: string): PushTarget | undefined {
    const config = targetFor(this.configs, this.queue, type);
    return config && this.targets.find((target) => target.config === config);
  }

  targetOfJob(row: JobRow): PushTarget | undefined {
    const config = targetOf(this.configs, this.queue, row);
    return config && this.targets.find((target) => target.config === config);
  }

  /** Have the calls to URLs used up the number that the platform lets wait at once? */
  get isConnectedOut(): boolean {
    return connectionsLeft(this.targets) <= 0;
  }

  /** Types that are taken, as far as known: the announced ones, else the patterns that lead to a target. */
  all(): string[] {
    const announced = this.targets.flatMap((target) =>
      target.listsTypes ? target.types.filter(({ type }) => this.targetOf(type) === target) : [],
    );
    const mapped = this.targets
      .filter(({ listsTypes }) => !listsTypes)
      .flatMap(({ config }) => config.patterns.filter(({ queue }) => queue === undefined || queue === this.queue));
    return [...new Set([...announced, ...mapped].map(({ type }) => type))];
  }

  /** ` Did you mean "…"?` if a similar type is taken. */
  hint(type: string): string {
    if (this.targets.length === 0) return '';
    let hint = this.hints.get(type);
    if (hint === undefined) {
      if (this.hints.size >= MAX_HINTS) this.hints.clear();
      hint = didYouMean(type, this.all());
      this.hints.set(type, hint);
    }
    return hint;
  }

  changed(): void {
    this.hints.clear();
  }

  /** What a producer of the type should know; undefined when all is well. */
  warning(type: string): string | undefined {
    const why = this.whyUnhandled(type);
    if (why !== undefined) return why;
    const hint = this.targetOf(type) ? '' : this.hint(type);
    if (hint === '') return undefined;
    return `No handler takes the type ${quoted(type)}, so its jobs wait for a worker that pulls.${hint}`;
  }

  /**
   * Why no handler takes the type, so that its jobs become dead letters. Undefined if one does or may, and for jobs
   * that wait for workers that pull.
   */
  whyUnhandled(type: string): string | undefined {
    if (this.targets.length === 0) return undefined;
    const target = this.targetOf(type);
    if (target?.announced(type) === 'unknown') {
      const { name } = target.config;
      return `No handler takes the type ${quoted(type)}: it is mapped to ${name}, which did not list it when it was last asked.${this.hint(type)}`;
    }
    if (target || !this.isOwned) return undefined;
    return `No handler takes the type ${quoted(type)}, and queue ${this.queue} belongs to handlers.${this.hint(type)}`;
  }
}

const quoted = (type: string): string => JSON.stringify(quote(type));

export const urlOf = (row: JobRow): string | undefined => (mayNameUrl(row.body) ? bodyOf(row).target_url : undefined);

/** The target of a job; undefined without one. A job with a URL has no other, even where that is no longer allowed. */
export const targetOf = (targets: readonly TargetConfig[], queue: string, row: JobRow): TargetConfig | undefined =>
  targetFor(targets, queue, row.type, urlOf(row));
