/** Empties a deployment. For tests only: the HTTP room offers it where TEST_HOOKS is on. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { directoryObject, queueObject, workflowObject } from '../rpc/stubs';
import { forgetRoutes } from './locate';
import { knownQueues } from './queues';
import { resetLocks } from './reservation';

/** @returns how many queues there were */
export async function resetAll(env: Env): Promise<number> {
  // First, so that none of them enqueues anything afterwards.
  await resetWorkflows(env);
  const queues = await knownQueues(env);
  await inParallel(queues, (name) => queueObject(env, name).reset());
  await resetLocks(env);
  await directoryObject(env).reset();
  forgetRoutes();
  return queues.length;
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
