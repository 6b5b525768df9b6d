/** The Worker's entry: the HTTP app and the object classes, nothing else. */
import type { Env } from './config';
import { createApp } from './http/app';

export { DirectoryObject } from './directory/object';
export { UniqueLockObject } from './locks/object';
export { QueueObject } from './queue/object';
export { WorkflowObject } from './workflow/object';

const app = createApp();

export default {
  fetch: (request, env, ctx) => app.fetch(request, env, ctx),
} satisfies ExportedHandler<Env>;
