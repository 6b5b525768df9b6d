import type { Env } from '../src/config';

declare global {
  namespace Cloudflare {
    interface GlobalProps {
      mainModule: typeof import('../src/index');
    }
    interface Env extends TestEnv {}
  }
  interface TestEnv extends Env {
    /** Handler Workers of the tests. */
    WORK: Fetcher;
    PLAIN: Fetcher;
    DOWN: Fetcher;
  }
}
