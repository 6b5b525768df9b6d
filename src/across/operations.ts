/** Operations on all jobs that match a filter, in all queues that it names, as one. */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { Selection } from '../job/filter';
import { isUuidV7 } from '../job/ids';
import type { KeyedOperation } from '../rpc/directory';
import { type BulkAction, type BulkItem, MAX_ERRORS, MAX_ITEMS, type OperationView } from '../rpc/operations';
import { queueObject } from '../rpc/stubs';
import { noteIds, placesOf } from './ids';
import { knownIfFew, queuesOf } from './queues';

/** The result of an operation in all its queues, the items queue by queue. */
export type OperationSummary = Omit<OperationView, 'started_at'>;

export interface OperateOptions {
  /** It was begun under an idempotency key, perhaps by an earlier request: then it continues. */
  keyed?: KeyedOperation | undefined;
  /** Note and return the results of the first jobs. */
  items?: boolean;
}

/** Begins an operation in every queue, and waits up to `waitMs` for its end. It continues by itself. */
export async function operate(
  env: Env,
  action: BulkAction,
  selection: Selection,
  waitMs: number,
  { keyed, items = false }: OperateOptions = {},
): Promise<OperationSummary> {
  const id = keyed?.id ?? uuidv7();
  const deadline = Date.now() + waitMs;
  const names = await queuesOf(env, defined({ queues: selection.queues ?? keyed?.queues }));
  // A queue that the earlier request did not reach begins now, with the jobs of that time.
  const createdUntil = keyed?.replayed ? { createdUntil: keyed.started_at } : {};
  const request = { id, action, filter: selection.filter, items, ...createdUntil };
  // A later request for its progress finds its queues.
  const places = names.map((queue) => ({ id, queue }));
  await noteIds(env, places, true);
  const begun = await inParallel(names, async (queue) => ({
    queue,
    view: unwrap(await queueObject(env, queue).operate(request, 0)),
  }));
  const first = new FirstItems(items);
  const views = await Promise.all(
    begun.map(async ({ queue, view }, index) => {
      if (view.done && !(items && view.matched + view.failed > 0)) return view;
      const wait = Math.max(0, deadline - Date.now());
      return first.takenFrom((await queueObject(env, queue).operation(id, wait, items)) ?? view, index);
    }),
  );
  return { ...summaryOf(id, action, views), ...first.asMember() };
}

/** The progress of an operation; undefined when no queue knows it. */
export async function findOperation(env: Env, id: string, waitMs: number): Promise<OperationSummary | undefined> {
  if (!isUuidV7(id)) return undefined;
  const first = new FirstItems(false);
  const queues = await queuesNoted(env, id);
  const answers = await inParallel([...queues.entries()], async ([index, queue]) => {
    const view = await queueObject(env, queue).operation(id, waitMs, true);
    return view && first.takenFrom(view, index);
  });
  const views = answers.filter((view) => view !== null);
  const [some] = views;
  return some && { ...summaryOf(id, some.action, views), ...first.asMember() };
}

/** Stops an operation in all its queues. @returns its progress; undefined when no queue knows it */
export async function abortOperation(env: Env, id: string): Promise<OperationSummary | undefined> {
  const known = await findOperation(env, id, 0);
  if (!known || known.done) return known;
  const answers = await inParallel(await queuesNoted(env, id), async (queue) =>
    unwrap(await queueObject(env, queue).abortOperation(id, known.action)),
  );
  return summaryOf(
    id,
    known.action,
    answers.filter((view) => view !== null),
  );
}

/** An operation, and when it began (epoch ms). */
export type ListedOperation = OperationSummary & Pick<OperationView, 'started_at'>;

/** Running and recently ended operations, newest first. @throws {ApiError} 422 for too many queues */
export async function listOperations(env: Env, named?: readonly string[]): Promise<ListedOperation[]> {
  const answers = await inParallel(await queuesOf(env, { queues: named }), (queue) =>
    queueObject(env, queue).operations(),
  );
  const groups = [...Map.groupBy(answers.flat(), ({ id }) => id)];
  return groups
    .map(([id, views]) => ({
      ...summaryOf(id, (views[0] as OperationView).action, views),
      started_at: Math.min(...views.map(({ started_at }) => started_at)),
    }))
    .sort((a, b) => Number(a.done) - Number(b.done) || b.started_at - a.started_at);
}

async function queuesNoted(env: Env, id: string): Promise<string[]> {
  const noted = (await placesOf(env, [id])).map(({ queue }) => queue).sort();
  // One of an earlier release was not noted.
  return noted.length > 0 ? noted : ((await knownIfFew(env)) ?? []);
}

/** The first items of an operation over many queues, in their order, as many as the answer shows. */
class FirstItems {
  private parts: (BulkItem[] | undefined)[] = [];

  /** @param noted whether there are any items */
  constructor(private noted: boolean) {}

  /** Takes the items out of a view. @param index place of the queue */
  takenFrom({ items, ...view }: OperationView, index: number): OperationView {
    if (items === undefined) return view;
    this.noted = true;
    this.parts[index] = items;
    let room = MAX_ITEMS;
    let failures = MAX_ERRORS;
    for (const [at, part] of this.parts.entries()) {
      this.parts[at] = part?.filter(({ status }) => room-- > 0 || (status === 'failed' && failures-- > 0));
    }
    return view;
  }

  asMember(): { items?: BulkItem[] } {
    return this.noted ? { items: this.parts.flatMap((part) => part ?? []) } : {};
  }
}

function summaryOf(id: string, action: BulkAction, views: readonly OperationView[]): OperationSummary {
  const sum = (count: (view: OperationView) => number) => views.reduce((total, view) => total + count(view), 0);
  return {
    id,
    action,
    done: views.every(({ done }) => done),
    matched: sum(({ matched }) => matched),
    succeeded: sum(({ succeeded }) => succeeded),
    skipped: sum(({ skipped }) => skipped),
    failed: sum(({ failed }) => failed),
    errors: views.flatMap(({ errors }) => errors).slice(0, MAX_ERRORS),
    ...(views.some(({ aborted }) => aborted) && { aborted: true as const }),
  };
}
