/** The jobs of the demo, and their expected ends. */

export const QUEUE = 'documents';

/** The origin in the links of the sample documents; the demo gives its real address. */
const PAGES = 'http://pages.example';

/** Short, so that the demo ends soon: half a second, one, two. */
const RETRY = { maxAttempts: 4, initialInterval: '500ms', backoffCoefficient: 2, jitter: false };

/** Less than the slow page takes. */
const LINK_TIMEOUT_MS = 1_500;

const SAMPLES = 'examples/documents/samples';

/** The sample whose attempts are shown in full. */
export const STORY = { type: 'link.check', path: `${SAMPLES}/flaky-and-slow.md` };

/** Jobs that do not complete in their first run, and why. */
const EXPECTED = {
  [`link.check ${SAMPLES}/broken-links.md`]: { outcome: 'dead letter', attempt: 1, reason: 'unrecoverable' },
  [`link.check ${SAMPLES}/missing-page.md`]: { outcome: 'dead letter', attempt: 1, reason: 'unrecoverable' },
  [`link.check ${SAMPLES}/dead-page.md`]: { outcome: 'discarded', attempt: 4, reason: 'retries_exhausted' },
  [`link.check ${SAMPLES}/flaky-page.md`]: { outcome: 'completed', attempt: 2 },
  [`link.check ${SAMPLES}/slow-page.md`]: { outcome: 'completed', attempt: 2 },
  [`link.check ${SAMPLES}/flaky-and-slow.md`]: { outcome: 'completed', attempt: 3 },
  [`document.digest ${SAMPLES}/empty.md`]: { outcome: 'discarded', attempt: 1, reason: 'discard_code' },
};

/**
 * One job of each kind for each document.
 *
 * @param {{documents: {path: string, markdown: string}[], files: Record<string, string[] | null>}} project
 * @param {string} pagesUrl where the sample's pages are served
 */
export function planJobs({ documents, files }, pagesUrl) {
  return documents.flatMap((document) => [
    { type: 'document.render', args: [document], options: { queue: QUEUE, retry: RETRY } },
    { type: 'document.digest', args: [document], options: { queue: QUEUE, retry: RETRY } },
    {
      type: 'link.check',
      args: [{ ...document, files, origins: { [PAGES]: pagesUrl } }],
      options: { queue: QUEUE, retry: RETRY, timeoutMs: LINK_TIMEOUT_MS },
    },
  ]);
}

/** The document a job is about. */
export function pathOf(job) {
  return job.args[0].path;
}

/** Why the last attempt ended the job; undefined for a job that completed. */
export function reasonOf(job) {
  return job.state === 'completed' ? undefined : (job.errors?.at(-1)?.reason ?? undefined);
}

/**
 * How a job ended, in a word: its state, or `dead letter`.
 * @param {{id: string, state: string}} job
 * @param {ReadonlySet<string>} deadLetters ids
 */
export function outcomeOf(job, deadLetters) {
  return deadLetters.has(job.id) ? 'dead letter' : job.state;
}

/**
 * The difference from the expected end, or undefined. Broken links in the project's own documents are a finding of the
 * demo, not a failure of it.
 */
export function surpriseIn(job) {
  const reason = reasonOf(job);
  const expected = EXPECTED[`${job.type} ${pathOf(job)}`] ?? { outcome: 'completed' };
  if (job.error?.type === 'BrokenLink' && reason === 'unrecoverable' && !pathOf(job).startsWith(SAMPLES))
    return undefined;
  const found = { outcome: job.outcome, attempt: job.attempt, reason };
  const differs = Object.keys(expected).find((name) => expected[name] !== found[name]);
  if (differs === undefined) return undefined;
  return `${differs} ${expected[differs]} expected, found ${found[differs]}`;
}
