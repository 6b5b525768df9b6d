/**
 * An example of a handler Worker: jobs that a documentation site runs in the background whenever a page changes. Each
 * job type shows another side of a queue: plain work, an obsolete job, and failing work. It fails for a while
 * (retried), for good (dead letter) or by its timeout.
 */
import { defineHandlers, discard } from '../../../src/handler';
import { checkLinks } from './check';
import { digest } from './digest';
import { type DocumentJobs, readDocument, readLinkCheck } from './document';
import { render } from './render';

export default defineHandlers<DocumentJobs>({
  'document.render': (job) => render(readDocument(job.args)),

  'document.digest': (job) => {
    const document = readDocument(job.args);
    if (document.markdown.trim() === '') throw discard(`${document.path} is empty: there is nothing to measure`);
    return digest(document);
  },

  'link.check': {
    timeoutMs: 10_000,
    retry: { maxAttempts: 5, initialInterval: '2s', maxInterval: '1m' },
    handler: async (job, ctx) => {
      const check = readLinkCheck(job.args);
      const result = await checkLinks(check, fetch, ctx.signal);
      ctx.log.info('links checked', { path: check.path, ...result });
      return result;
    },
  },
});
