import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lane } from '../../../src/queue/store/groups/lane';
import { QUIET, Turns } from '../../../src/queue/store/groups/turns';
import { MemoryBudget, SIZES } from '../../../src/queue/store/sizes';
import { histories } from '../../support/long';

const SEED = 20_260_124;
const NAMES = [undefined, 'a', 'b', 'c'] as const;
type Name = (typeof NAMES)[number];

/** What happens to what was read ahead. */
type Act =
  | { do: 'add'; group: Name; count: number; apart: boolean }
  | { do: 'claim'; count: number; outcomes: ('take' | 'drop' | 'hold' | 'block')[] }
  | { do: 'back'; pick: number }
  | { do: 'free'; group: Name };

const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant('add' as const),
      group: fc.constantFrom(...NAMES),
      count: fc.constantFrom(1, 1, 2, 5, 40),
      apart: fc.boolean(),
    }),
    fc.record({
      do: fc.constant('claim' as const),
      count: fc.constantFrom(1, 2, 8, 50),
      outcomes: fc.array(fc.constantFrom('take', 'take', 'take', 'drop', 'hold', 'block'), {
        minLength: 1,
        maxLength: 5,
      }),
    }),
    fc.record({ do: fc.constant('back' as const), pick: fc.nat(100) }),
    fc.record({ do: fc.constant('free' as const), group: fc.constantFrom(...NAMES) }),
  ),
  { maxLength: 60 },
);

/** The plain truth beside it: what waits of each group, in order. */
class Naive {
  readonly turns = new Turns(() => 1);
  private readonly waiting = new Map<Name, number[]>(NAMES.map((name) => [name, []]));
  private readonly blocked = new Set<Name>();
  private readonly taken: { key: number; group: Name }[] = [];
  private key = 0;

  private of(group: Name): number[] {
    return this.waiting.get(group) as number[];
  }

  play(act: Act): void {
    if (act.do === 'add') this.add(act);
    else if (act.do === 'claim') this.claim(act);
    else if (act.do === 'back') this.back(act.pick);
    else if (act.group !== undefined) {
      this.turns.freed(act.group);
      this.blocked.delete(act.group);
    }
    this.compare();
  }

  private add({ group, count, apart }: Act & { do: 'add' }): void {
    for (let n = 0; n < count; n++) {
      this.key += apart ? 2 : 1;
      this.turns.add({ at: this.key, attempt: 0, key: this.key }, group);
      this.of(group).push(this.key);
    }
  }

  private claim({ count, outcomes }: Act & { do: 'claim' }): void {
    const { turns } = this;
    const aside: { key: number; group: Name }[] = [];
    turns.begin(count, 0);
    let left = count;
    for (let step = 0; left > 0; step++) {
      const lane = turns.next(left);
      if (!lane) break;
      const group = lane.group as Name;
      expect(this.blocked.has(group), 'a blocked lane is served').toBe(false);
      const key = lane.first as number;
      expect(key).toBe(this.of(group)[0]);
      const outcome = outcomes[step % outcomes.length];
      if (outcome === 'block' && group !== undefined) {
        turns.block(lane);
        this.blocked.add(group);
        continue;
      }
      this.of(group).shift();
      if (outcome === 'take') {
        turns.taken(lane);
        this.taken.push({ key, group });
        left--;
      } else if (outcome === 'hold') {
        turns.setAside(lane, { at: key, attempt: 0, key });
        aside.push({ key, group });
      } else turns.drop(lane);
    }
    if (left > 0) {
      const ready = NAMES.filter((name) => !this.blocked.has(name) && this.of(name).length > 0);
      expect(ready, 'groups that were left although more was wanted').toEqual([]);
    }
    turns.end();
    for (const { key, group } of aside) this.insert(key, group);
  }

  private back(pick: number): void {
    const [job] = this.taken.splice(pick % Math.max(1, this.taken.length), 1);
    if (!job) return;
    this.turns.putBack({ at: job.key, attempt: 0, key: job.key }, job.group);
    this.insert(job.key, job.group);
  }

  /** Before all that were read after it: they have higher numbers. */
  private insert(key: number, group: Name): void {
    this.blocked.delete(group);
    this.of(group).push(key);
    this.of(group).sort((a, b) => a - b);
  }

  private compare(): void {
    const inside = this.turns as unknown as { lanes: Map<Name, Lane>; entries: number; quietJobs: number };
    const lanes = [...inside.lanes.values()];
    expect(lanes.reduce((sum, { entries }) => sum + entries, 0)).toBe(inside.entries);
    const quiet = lanes.filter(({ place }) => place === 'quiet');
    expect(quiet.reduce((sum, { size }) => sum + size, 0)).toBe(inside.quietJobs);
    for (const name of NAMES) expect(inside.lanes.get(name)?.size ?? 0).toBe(this.of(name).length);
    expect(this.turns.isEmpty).toBe(NAMES.every((name) => this.of(name).length === 0));
    const first = Math.min(...NAMES.flatMap((name) => this.of(name)));
    expect(Math.min(...lanes.map(({ inLine }) => inLine))).toBe(first);
  }
}

/** Lets groups have so many jobs waiting, and claims so many at once, without end. */
function serve(weights: Record<string, number>, claims: number, count: number, quietEach = 0) {
  const turns = new Turns((group) => weights[group] ?? 1);
  const served = new Map<string, number>();
  let key = 0;
  const add = (group: string) => turns.add({ at: ++key, attempt: 0, key }, group);
  for (const group of Object.keys(weights)) for (let n = 0; n <= QUIET; n++) add(group);
  let quiet = 0;
  for (let claim = 0; claim < claims; claim++) {
    for (let n = 0; n < quietEach; n++) add(`quiet-${++quiet}`);
    turns.begin(count, 0);
    for (let left = count; left > 0; left--) {
      const lane = turns.next(left);
      if (!lane) throw new Error('nobody is served');
      const { group = '' } = lane;
      served.set(group, (served.get(group) ?? 0) + 1);
      turns.taken(lane);
      if (group in weights) add(group);
    }
    turns.end();
  }
  const of = (group: string) => served.get(group) ?? 0;
  const noisy = Object.keys(weights).reduce((sum, group) => sum + of(group), 0);
  return { of, noisy, total: claims * count };
}

describe('turns of groups', () => {
  it('give every job once and in the order of its group, unless it is dropped, and count what they hold', () => {
    const property = fc.property(acts, (all) => {
      const naive = new Naive();
      for (const act of all) naive.play(act);
    });
    fc.assert(property, { numRuns: histories(400), seed: SEED });
  });

  it('give noisy groups shares by their weights, whatever a claim takes', () => {
    for (const count of [1, 3, 10, 100]) {
      const weights = { a: 1, b: 2, c: 5 };
      const { of, total } = serve(weights, 8_000 / count, count);
      for (const [group, weight] of Object.entries(weights)) {
        expect(Math.abs(of(group) / total - weight / 8), `${group} by ${count}`).toBeLessThan(0.02);
      }
    }
  });

  it('keep an eighth for noisy groups where quiet ones never end, and no more', () => {
    for (const count of [1, 2, 8, 100]) {
      const { of, noisy, total } = serve({ a: 1, b: 1 }, 4_000 / count, count, count);
      expect(Math.abs(noisy / total - 1 / 8), `by ${count}`).toBeLessThan(0.01);
      expect(Math.abs(of('a') - of('b'))).toBeLessThanOrEqual(16);
    }
  });

  it('keep no more for noisy groups, however often they are looked at before a job is taken', () => {
    const turns = new Turns(() => 1);
    let key = 0;
    const add = (group: string) => turns.add({ at: ++key, attempt: 0, key }, group);
    for (let n = 0; n < 100; n++) add('noisy');
    for (let n = 0; n < 16; n++) add(`quiet-${n}`);
    for (let looks = 0; looks < 1_000; looks++) {
      turns.begin(1, 0);
      expect(turns.next(1)).toBeDefined();
      turns.end();
    }
    turns.begin(16, 0);
    const served = Array.from({ length: 16 }, (_, taken) => {
      const lane = turns.next(16 - taken) as Lane;
      turns.taken(lane);
      return lane.group;
    });
    expect(served.filter((group) => group === 'noisy')).toHaveLength(2);
  });

  it('take quiet groups in the order in which their jobs became available', () => {
    const groups = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: QUIET });
    const property = fc.property(groups, (all) => {
      const turns = new Turns(() => 1);
      for (const [key, group] of all.entries()) turns.add({ at: key, attempt: 0, key }, group);
      turns.begin(all.length, 0);
      const keys = all.map((_, index) => {
        const lane = turns.next(all.length - index) as Lane;
        const { first } = lane;
        turns.taken(lane);
        return first;
      });
      expect(keys).toEqual(all.map((_, index) => index));
    });
    fc.assert(property, { numRuns: histories(200), seed: SEED });
  });

  it('hold a bounded number of groups, however many wait, and some for each consumer whatever the others hold', () => {
    const groupsOf = (others: number) => {
      const turns = new Turns(() => 1);
      const memory = new MemoryBudget(SIZES, () => turns.held + others);
      for (let groups = 0; ; groups++) {
        if (!turns.wantsMore(100, memory.roomFor(turns.held))) return { groups, held: turns.held };
        turns.add({ at: groups, attempt: 0, key: 2 * groups }, `group ${groups}`);
        // None of them may start a job.
        turns.begin(1, 0);
        turns.block(turns.next(1) as Lane);
        turns.end();
      }
    };
    const alone = groupsOf(0);
    expect(alone.groups).toBeGreaterThan(50_000);
    expect(alone.groups).toBeLessThan(100_000);
    expect(groupsOf(alone.held).groups).toBeGreaterThan(1_000);
    expect(groupsOf(alone.held).groups).toBeLessThan(2_000);
  });
});
