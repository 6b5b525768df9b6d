/**
 * `npm run demo`: starts the queue and its example handlers, gives them every Markdown document of this project, and
 * shows the outcome. At a terminal it then opens the dashboard on what it did, and stays until Ctrl-C; where nobody watches it
 * ends. `--stay` and `--end` say which. It uses a temporary folder and removes it at the end. Exit code: 0 when every job ended
 * as expected, 1 otherwise, 130 and 143 after a signal before that.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { openPage } from '../dev/browser.mjs';
import { onceWithoutNpm } from '../dev/processes.mjs';
import { root, startDevelopment } from '../dev/wrangler.mjs';
import { importTypeScript } from './modules.mjs';
import { servePages } from './pages.mjs';
import { outcomeOf, pathOf, planJobs, QUEUE, STORY, surpriseIn } from './plan.mjs';
import { endedOf, progressLine, progressWriter } from './progress.mjs';
import { readProject } from './project.mjs';
import { findings, outcomeTable, story, totalsTable } from './report.mjs';

/** Timeout for all jobs together, in ms. */
const TIMEOUT_MS = 60_000;
const LOOK_INTERVAL_MS = 100;
/** Jobs in one enqueue, so that a large project stays below the limit of a request. */
const BATCH = 100;

const folder = mkdtempSync(join(tmpdir(), 'tocsin-demo-'));
let printed = '';
let front;
let development;
let pages;
let ending;
/** Leaves the page that stays open, once there is one. */
let close;

const given = process.argv.slice(2);
const stays = given.includes('--stay') || (process.stdout.isTTY === true && !given.includes('--end'));

/** Stops everything that was started; safe to call again. */
function stop() {
  ending ??= (async () => {
    pages?.close();
    front?.close();
    await development?.stop();
    rmSync(folder, { recursive: true, force: true });
  })();
  return ending;
}

async function leave(exitCode) {
  await stop();
  process.exit(exitCode);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => (close ? close() : leave(128 + constants.signals[signal])));
}
onceWithoutNpm(() => (close ? close() : leave(1)));

/** @returns what did not go as expected, and where the dashboard is */
async function demo() {
  const began = Date.now();
  const { openFront } = await importTypeScript('src/cli/front.ts');
  // The system chooses all ports, so that the demo runs beside anything.
  front = await openFront(0, '127.0.0.1');
  development = startDevelopment(
    [...front.args, '--inspector-port', '0', '--persist-to', join(folder, 'state')],
    (chunk) => {
      printed += front.read(String(chunk));
    },
    { WRANGLER_REGISTRY_PATH: join(folder, 'registry') },
  );
  const [library] = await Promise.all([importTypeScript('examples/demo/library.ts'), development.ready]);
  const { url } = front;
  pages = await servePages();
  const { TocsinClient, anchorsOf } = library;
  const client = new TocsinClient({ url, safeRetries: true });
  const project = readProject(root, anchorsOf);
  const jobs = planJobs(project, pages.url);
  console.log(`Ready at ${url} after ${seconds(Date.now() - began)}.`);
  console.log(`${project.documents.length} documents, ${jobs.length} jobs.\n`);

  const ids = await enqueue(client, jobs);
  await watch(url, ids.length);
  const deadLetters = await deadLettersIn(url);
  const ended = await Promise.all(
    ids.map(async (id) => {
      const job = await client.get(id);
      return { ...job, outcome: outcomeOf(job, deadLetters) };
    }),
  );

  console.log(`\n${outcomeTable(ended)}\n\n${totalsTable(ended)}`);
  const told = ended.find((job) => job.type === STORY.type && pathOf(job) === STORY.path);
  if (told) console.log(`\nOne job in full, as GET /ojs/v1/jobs/${told.id} has it:\n\n${story(told)}`);
  const broken = findings(ended);
  if (broken) console.log(`\nLinks that lead nowhere:\n${broken}`);
  return { surprises: surprisesIn(ended), page: `${url}/ui/queues/${QUEUE}` };
}

async function enqueue(client, jobs) {
  const ids = [];
  for (let start = 0; start < jobs.length; start += BATCH) {
    const enqueued = await client.enqueueMany(jobs.slice(start, start + BATCH));
    ids.push(...enqueued.map(({ id }) => id));
  }
  return ids;
}

/** Shows progress until all jobs have ended, or the timeout is over. */
async function watch(url, total) {
  const writer = progressWriter(process.stdout);
  const began = Date.now();
  for (;;) {
    const response = await fetch(`${url}/ojs/v1/queues/${QUEUE}/stats`);
    const { stats } = await response.json();
    const elapsed = Date.now() - began;
    const line = progressLine(stats, total, elapsed);
    if (endedOf(stats, total) === total || elapsed > TIMEOUT_MS) {
      writer.end(line);
      return;
    }
    writer.show(line, elapsed);
    await wait(LOOK_INTERVAL_MS);
  }
}

/** Ids of the dead letters. */
async function deadLettersIn(url) {
  const response = await fetch(`${url}/ojs/v1/dead-letter?queue=${QUEUE}&limit=200`);
  const { jobs } = await response.json();
  return new Set(jobs.map(({ id }) => id));
}

function surprisesIn(jobs) {
  return jobs.flatMap((job) => {
    const surprise = surpriseIn(job);
    return surprise === undefined ? [] : [`${job.type} ${pathOf(job)}: ${surprise}`];
  });
}

/** Keeps the queue and its dashboard until Ctrl-C. */
async function show(page) {
  console.log(`\nSee it in the dashboard: ${page}\nIt stays there until Ctrl-C.`);
  if (process.stdout.isTTY) openPage(page);
  await new Promise((resolve) => {
    close = resolve;
  });
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

const began = Date.now();
try {
  const { surprises, page } = await demo();
  if (surprises.length > 0) {
    console.error(`\nNot as expected:\n${surprises.join('\n')}`);
    process.exitCode = 1;
  } else {
    console.log(`\nEvery job ended as it should. ${seconds(Date.now() - began)} in all.`);
  }
  if (stays) await show(page);
  await stop();
} catch (error) {
  const interrupted = ending !== undefined;
  await stop();
  if (!interrupted) {
    console.error(error);
    console.error(`\nThe development server printed:\n${printed}`);
  }
  process.exitCode = 1;
}
