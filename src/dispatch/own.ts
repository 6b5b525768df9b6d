/** Handlers in the queue's own Worker, called through an entrypoint: each call is an invocation that can die alone. */
import { exports } from 'cloudflare:workers';
import type { OwnHandlers } from '../declaration';
import { invalidConfiguration } from '../job/errors';
import { type Binding, TARGET_DEFAULTS, type TargetConfig } from './config';

const ENTRYPOINT = 'TocsinHandlers';

/** Names the target in errors, events and worker ids. */
const NAME = 'handlers';

/** The target of the deployment's own handlers. @throws {ApiError} 500 when the entrypoint is not exported */
export const ownTarget = ({ types, fetch: _, ...delivery }: OwnHandlers): TargetConfig => ({
  id: NAME,
  name: NAME,
  binding: entrypoint(),
  patterns: types.map((type) => ({ type })),
  ...TARGET_DEFAULTS,
  ...delivery,
});

function entrypoint(): Binding {
  const exported = (exports as unknown as Record<string, Binding | undefined>)[ENTRYPOINT];
  if (exported !== undefined) return exported;
  throw invalidConfiguration(`The Worker has handlers of its own, so it must export ${ENTRYPOINT} of tocsin/queue.`, {
    missing: [ENTRYPOINT],
  });
}
