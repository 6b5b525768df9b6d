/**
 * `npm run bench -- --steady`: what a user feels under a load that goes on, of Tocsin and of durable peers, in turns. A day that is
 * `bad` happens to Tocsin alone.
 */
import { fork } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { installPeers } from '../peers/packages.mjs';
import { block, item } from '../report.mjs';
import { round } from '../stats.mjs';
import { BAD } from './bad.mjs';
import { descriptor, lines } from './contract.mjs';

const CHILD = fileURLToPath(new URL('child.mjs', import.meta.url));

/** Who is loaded, and where its jobs run. */
const SYSTEMS = {
  pulled: { title: 'Tocsin, pulled', system: 'tocsin', mode: 'pulled' },
  pushed: { title: 'Tocsin, pushed', system: 'tocsin', mode: 'pushed' },
  own: { title: 'Tocsin, in the own Worker', system: 'tocsin', mode: 'own' },
  bullmq: { title: 'BullMQ', system: 'bullmq' },
  graphile: { title: 'graphile-worker', system: 'graphile' },
  pgboss: { title: 'pg-boss', system: 'pgboss' },
};
const PEERS = ['bullmq', 'graphile', 'pgboss'];

/**
 * Loads each of the chosen systems at each rate, and prints a table. Resolves to whether all went well.
 * @param options.rate jobs/s, with commas between; absent: 800, 3,000 and 8,000
 * @param options.minutes of each; absent: 1
 * @param options.only names of systems, with commas between; absent: all
 * @param options.bad what happens meanwhile; `all`: each in turn
 * @param options.contract a file for the lines of the long-horizon contract
 */
export async function runSteady({ rate, minutes = '1', only, quick, bad, contract }, report) {
  const begun = performance.now();
  const rates = (rate ?? (quick || bad ? '800' : '800,3000,8000')).split(',').map((text) => positive('rate', text));
  const seconds = quick ? 10 : 60 * positive('minutes', minutes);
  const days = bad === undefined ? [undefined] : bad === 'all' ? Object.keys(BAD) : bad.split(',');
  known('bad day', days, { ...BAD, undefined: '' });
  const namesOn = (day) => (day ? [BAD[day].mode] : (only?.split(',') ?? Object.keys(SYSTEMS)));
  const names = days.flatMap(namesOn);
  known('system', names, SYSTEMS);
  const packages = names.some((name) => PEERS.includes(name)) ? installPeers() : {};
  const file = contract === undefined ? undefined : createWriteStream(contract);
  const notes = new Set();
  const results = [];
  try {
    for (const day of days) {
      for (const jobs of rates) {
        for (const name of namesOn(day)) {
          if (packages.problem && PEERS.includes(name)) {
            notes.add(`${SYSTEMS[name].title} was left out: ${packages.problem}`);
            continue;
          }
          const { title, ...which } = SYSTEMS[name];
          const order = { ...which, rate: jobs, seconds, bad: day, packages: packages.directory };
          const subject = day === undefined ? title : `${title}, ${BAD[day].title}`;
          results.push({ title: subject, rate: jobs, ...(await load(order, { name, file, notes })) });
        }
      }
    }
  } finally {
    packages.remove?.();
    file?.end();
  }
  print(results, notes);
  report.steady = results;
  report.seconds = round((performance.now() - begun) / 1000, 1);
  return results.every(({ error }) => error === undefined);
}

function positive(what, text) {
  if (!/^\d+(\.\d+)?$/.test(text) || Number(text) === 0)
    throw new Error(`--${what} must be a number above 0, not ${text}.`);
  return Number(text);
}

function known(what, names, all) {
  const unknown = names.find((name) => !Object.hasOwn(all, String(name)));
  if (unknown !== undefined) throw new Error(`No ${what} ${unknown}; there are ${Object.keys(all).join(', ')}.`);
}

/** One system at one rate. Its samples go to the file as they come. */
async function load(order, { name, file, notes }) {
  const child = fork(CHILD, [JSON.stringify(order)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  file?.write(descriptor(name));
  let result = { error: 'Its process ended without a summary.' };
  const samples = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const { sample, summary, skipped, error, notes: said = [] } = JSON.parse(line);
    for (const note of said) notes.add(note);
    if (sample) {
      samples.push(sample);
      file?.write(lines(name, sample));
    }
    if (summary) result = summary;
    if (skipped ?? error) result = { error: skipped ?? error };
  }
  if (result.error) console.error(`${name} at ${order.rate}/s: ${result.error}\n`);
  return { ...result, samples };
}

function print(results, notes) {
  const shown = (value) => (value === undefined || Number.isNaN(value) ? '–' : value.toLocaleString('en-US'));
  const columns = [
    'jobs/s',
    'p50 ms',
    'p95',
    'p99',
    'p99.9',
    'max',
    'left',
    'server CPU',
    'client CPU',
    'RSS MB',
    'stored MB',
    'rows',
  ];
  const rows = [...Map.groupBy(results, ({ rate }) => rate)].flatMap(([rate, group]) => [
    [`${shown(rate)} jobs/s`],
    ...group.map((one) => [
      one.title,
      ...[one.seconds && one.started / one.seconds].map((value) => shown(value && Math.round(value))),
      ...['claim_p50_ms', 'claim_p95_ms', 'claim_p99_ms', 'claim_p999_ms', 'claim_max_ms'].map((key) =>
        shown(one[key]),
      ),
      ...['left', 'server_cpu_ms', 'client_cpu_ms', 'rss_mb', 'stored_mb', 'rows_job'].map((key) => shown(one[key])),
    ]),
  ]);
  console.log(block('Steady load', ['', ...columns], rows));
  const trends = results.filter(({ p99_last_to_first }) => p99_last_to_first !== undefined);
  const text = ({ title, rate, ...of }) =>
    `${title} at ${shown(rate)}/s, last ten minutes to first: p99 ${of.p99_last_to_first}, RSS ${of.rss_last_to_first}, stored ${of.stored_last_to_first}.`;
  for (const { title, rate, recovered_s: seconds, worked_off_s: whole } of results) {
    const text = (values) =>
      values.map((value) => (value === undefined ? 'not before the next one' : `${value} s`)).join(', ');
    if (!seconds) continue;
    notes.add(
      `${title} at ${shown(rate)}/s: starts as before after ${text(seconds)}; nothing left after ${text(whole)}.`,
    );
  }
  const about =
    'CPU in ms, and rows written, a job. `left`: jobs that were enqueued and did not start within 90 s of the end.';
  console.log(`${[...notes, about, ...trends.map(text)].map(item).join('\n')}\n`);
}
