/** Empties a deployment. For tests only: the HTTP room offers it where TEST_HOOKS is on. */
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
import { resetLocks } from './reservation';

/** @returns how many queues there were */
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
