/** Failed jobs in groups: ended ones, newest first, then retrying ones, by bounded steps with a cursor, and cached. */
import { defined } from '../../job/envelope/fields';
import { fingerprintOfFailure } from '../../job/failures/fingerprint';
import type { JobFilter } from '../../job/filter';
import type {
  DeadLetterPlace,
  FailureGroup,
  FailureState,
  FailuresPart,
  FailuresPlace,
  FailuresRequest,
} from '../../rpc/failures';
import { newestEnded } from '../store/ended-rows';
import { STATE } from '../store/job-row';
import type { QueueParts, StoredQueue } from '../store/parts';
import { idOf } from '../store/rows';
import { FAILURE, foundFailure } from './filter';
import { type Hit, matchingRows, scan } from './scan';

/** Rows looked at by one statement. */
const STEP = 250;

const MAX_GROUPS = 500;

/** Cached answers of a queue, and their lifetime: retried jobs become available without a change. */
const MAX_REMEMBERED = 20;
const REMEMBER_MS = 5_000;

// As text: it must not become an array within the array.
const MEASURE = `json_array(type, alias, created_at, ended_at, (${FAILURE}) || '')`;
type Measured = [
  type: string,
  alias: string | null,
  created_at: number,
  ended_at: number | null,
  failure: string | null,
];

const ORDER: readonly FailureState[] = ['dead', 'discarded', 'retrying'];

interface Remembered {
  changes: number;
  until: number;
  answers: Map<string, FailuresPart>;
}
const remembered = new WeakMap<QueueParts, Remembered>();

export function failures(q: QueueParts, request: FailuresRequest, now: number): FailuresPart {
  let known = remembered.get(q);
  if (known?.changes !== q.store.changes || known.until < now) {
    known = { changes: q.store.changes, until: now + REMEMBER_MS, answers: new Map() };
    remembered.set(q, known);
  }
  const name = JSON.stringify(request);
  const answer = known.answers.get(name) ?? look(q, request, now);
  if (known.answers.size < MAX_REMEMBERED) known.answers.set(name, answer);
  return answer;
}

function look(q: StoredQueue, request: FailuresRequest, now: number): FailuresPart {
  const groups = new Groups(q.route, request);
  const { states, from } = request;
  for (const state of ORDER.slice(from === undefined ? 0 : ORDER.indexOf(from.state))) {
    if (!states.includes(state)) continue;
    const start = from?.state === state ? from : undefined;
    const next =
      state === 'retrying' ? lookAtWaiting(q, groups, start, now) : lookAtEnded(q, groups, state, start, now);
    if (next) return { ...groups.told(), next };
  }
  return groups.told();
}

/** Jobs that ended in this state, newest first. @returns where to continue */
function lookAtEnded(
  q: StoredQueue,
  groups: Groups,
  state: 'dead' | 'discarded',
  from: FailuresPlace | undefined,
  now: number,
): FailuresPlace | undefined {
  const { since = 0, until = Number.MAX_SAFE_INTEGER } = groups.request;
  let before = from?.state === state ? from.at : undefined;
  const filter = groups.filterOf(['discarded']);
  for (;;) {
    if (groups.isFull()) return { state, ...defined({ at: before }) };
    const range = { since, until, ...defined({ before }) };
    const places: DeadLetterPlace[] = newestEnded(q.store.sql, STATE[state], range, STEP);
    const keys = places.map(({ key }) => key);
    for (const hit of matchingRows(q, filter, keys, MEASURE, now)) groups.add(state, hit);
    groups.looked += places.length;
    before = places.at(-1);
    if (places.length < STEP) return undefined;
  }
}

/** Jobs that wait for their next attempt. @returns where to continue */
function lookAtWaiting(
  q: StoredQueue,
  groups: Groups,
  from: FailuresPlace | undefined,
  now: number,
): FailuresPlace | undefined {
  const before = from?.state === 'retrying' ? from.before : undefined;
  if (groups.isFull()) return { state: 'retrying', ...defined({ before }) };
  const budget = Math.max(1, groups.request.budget - groups.looked);
  const waiting = { filter: groups.filterOf(['retryable']), measure: MEASURE, budget, from: before };
  const { next, looked } = scan(q, waiting, now, (hit) => groups.add('retrying', hit));
  groups.looked += looked;
  return next === undefined ? undefined : { state: 'retrying', before: next };
}

class Groups {
  looked = 0;
  private readonly groups = new Map<string, FailureGroup>();

  constructor(
    private readonly route: number,
    readonly request: FailuresRequest,
  ) {}

  filterOf(states: JobFilter['states'] & {}): JobFilter {
    const { types, groups } = this.request;
    return { states, ...defined({ types, groups }) };
  }

  isFull(): boolean {
    return this.looked >= this.request.budget || this.groups.size >= MAX_GROUPS;
  }

  told(): FailuresPart {
    return { groups: [...this.groups.values()], looked: this.looked };
  }

  add(state: FailureState, { key, measure }: Hit): void {
    const [type, alias, created_at, ended_at, json] = JSON.parse(measure as string) as Measured;
    const failure = foundFailure(type, json);
    if (!failure) return;
    const { occurred_at, ...told } = failure;
    const at = ended_at ?? occurred_at ?? created_at;
    const { since = 0, until = Number.POSITIVE_INFINITY, fingerprints } = this.request;
    if (at < since || at >= until) return;
    const fingerprint = fingerprintOfFailure(failure);
    if (fingerprints && !fingerprints.includes(fingerprint)) return;
    const job_id = idOf(this.route, { alias, created_at, key });
    const group = this.groups.get(fingerprint) ?? {
      fingerprint,
      failure: told,
      ...{ dead: 0, discarded: 0, retrying: 0 },
      ...{ first_seen_at: at, last_seen_at: at, job_id },
    };
    group[state]++;
    group.first_seen_at = Math.min(group.first_seen_at, at);
    if (at > group.last_seen_at) Object.assign(group, { last_seen_at: at, job_id, failure: told });
    this.groups.set(fingerprint, group);
  }
}
