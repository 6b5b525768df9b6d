/** The queue and the handler of the steady load in one Worker. */
import { createTocsin } from '../../../src/library';
import { handlers } from '../handler/index';

export {
  DirectoryObject,
  QueueObject,
  Tocsin,
  TocsinHandlers,
  UniqueLockObject,
  WorkflowObject,
} from '../../../src/library';

const tocsin = createTocsin({ handlers, delivery: { batchSize: 64 }, queues: { steady: { concurrency: 64 } } });

export default tocsin.worker({ fetch: () => new Response('Not found', { status: 404 }) });
