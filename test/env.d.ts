import type { Env } from '../src/config';
import type { DirectoryObject } from '../src/directory/object';
import type { UniqueLockObject } from '../src/locks/object';
import type { QueueObject } from '../src/queue/object';
import type { WorkflowObject } from '../src/workflow/object';

type Objects = 'QUEUES' | 'DIRECTORY' | 'UNIQUE_LOCKS' | 'WORKFLOWS';

declare global {
  namespace Cloudflare {
    interface GlobalProps {
      mainModule: typeof import('../src/index');
    }
    interface Env extends TestEnv {}
  }
  interface TestEnv extends Omit<Env, Objects> {
    QUEUES: DurableObjectNamespace<QueueObject>;
    DIRECTORY: DurableObjectNamespace<DirectoryObject>;
    UNIQUE_LOCKS: DurableObjectNamespace<UniqueLockObject>;
    WORKFLOWS: DurableObjectNamespace<WorkflowObject>;
    /** Handler Workers of the tests. */
    WORK: Fetcher;
    PLAIN: Fetcher;
    DOWN: Fetcher;
  }
}
