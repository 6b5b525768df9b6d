/** Every object of a deployment. For tests of a Worker that holds the queue: they look when each wakes by itself. */

import type { Env } from '../config';
import { forgetStored } from '../durable/memory';
import { inParallel } from '../durable/parallel';
import {
  directoryObject,
  idShard,
  lookoutObject,
  poolObject,
  queueObject,
  webhookObject,
  workflowObject,
} from '../rpc/stubs';
import { allQueues } from './queues';
import { lockObjects, resetLocks } from './reservation';

const PAGE = 200;

export async function allObjects(env: Env): Promise<{ name: string; stub: DurableObjectStub }[]> {
  const directory = directoryObject(env);
  const found: { name: string; stub: unknown }[][] = await Promise.all([
    queues(env),
    workflows(env),
    directory.shards().then((names) => names.map((name) => ({ name, stub: idShard(env, name) }))),
    directory.webhooks().then((all) => all.map(({ id }) => ({ name: `webhook ${id}`, stub: webhookObject(env, id) }))),
    lockObjects(env).then((locks) => locks.map(({ name, lock }) => ({ name, stub: lock }))),
    [
      { name: 'directory', stub: directory },
      { name: 'lookout', stub: lookoutObject(env) },
    ],
  ]);
  // The rooms see only the verbs of a stub.
  return found.flat() as { name: string; stub: DurableObjectStub }[];
}

async function queues(env: Env): Promise<{ name: string; stub: unknown }[]> {
  const found: { name: string; stub: unknown }[] = [];
  for await (const page of allQueues(env)) {
    for (const { name } of page) found.push({ name: `queue ${name}`, stub: queueObject(env, name) });
  }
  return found;
}

async function workflows(env: Env): Promise<{ name: string; stub: unknown }[]> {
  const found: { name: string; stub: unknown }[] = [];
  for (;;) {
    const page = await directoryObject(env).workflows({ offset: found.length, limit: PAGE });
    for (const { id } of page.workflows) found.push({ name: `workflow ${id}`, stub: workflowObject(env, id) });
    if (!page.more || page.workflows.length === 0) return found;
  }
}

/** Empties a deployment. For tests only: over HTTP where TEST_HOOKS is on. @returns how many queues there were */
export async function resetAll(env: Env): Promise<number> {
  // First, so that none of them enqueues anything afterwards.
  await resetWorkflows(env);
  let count = 0;
  for await (const queues of allQueues(env)) {
    await inParallel(queues, ({ name }) => queueObject(env, name).reset());
    count += queues.length;
  }
  await resetLocks(env);
  const directory = directoryObject(env);
  await inParallel(await directory.webhooks(), ({ id }) => webhookObject(env, id).configureWebhook(null));
  await inParallel(await directory.pools(), ({ name }) => poolObject(env, name).definePool(null));
  await inParallel(await directory.shards(), (name) => idShard(env, name).reset());
  await lookoutObject(env).reset();
  await directory.reset();
  forgetStored();
  return count;
}

async function resetWorkflows(env: Env): Promise<void> {
  for (;;) {
    const { workflows } = await directoryObject(env).workflows({ offset: 0, limit: 200 });
    if (workflows.length === 0) return;
    await inParallel(workflows, async ({ id }) => {
      await workflowObject(env, id).reset();
      await directoryObject(env).forgetWorkflow(id);
    });
  }
}
