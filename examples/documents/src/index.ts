/**
 * An example of a handler Worker: what a documentation site may want done in the background whenever a page changes.
 * Each job type shows another side of a queue: plain work, a job that is no longer of use, and work that fails for a
 * while (retried), for good (dead letter) or by taking too long (timeout).
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
    retry: { max_attempts: 5, initial_interval: '2s', max_interval: '1m' },
    handler: async (job, ctx) => {
      const check = readLinkCheck(job.args);
      const result = await checkLinks(check, fetch, ctx.signal);
      ctx.log.info('links checked', { path: check.path, ...result });
      return result;
    },
  },
});
