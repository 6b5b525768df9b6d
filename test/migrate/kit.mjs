/** The program, a queue that it serves, and other systems to move from, where this machine has what they need. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { discard, scratch } from '../../bench/load/scratch.mjs';
import { installPeers } from '../../bench/peers/packages.mjs';
import { findPostgres, NO_POSTGRES, startPostgres } from '../../bench/peers/postgres.mjs';
import { NO_REDIS, redisVersion, startRedis } from '../../bench/peers/redis.mjs';
import { kit } from '../cli/serve/kit.mjs';

/** Says what is left out, and why: a skipped test alone is easily overlooked. */
export function leftOut(what, why) {
  const text = `${what} is left out: ${why}`;
  console.log(text);
  return text;
}

/** What a test of a system on Redis lacks here; undefined: nothing. */
export const lacksRedis = () => (redisVersion() ? undefined : NO_REDIS);

export const lacksPostgres = () => (findPostgres() ? undefined : NO_POSTGRES);

/** A Redis of its own. */
export async function redis() {
  const directory = scratch('tocsin-migrate-');
  const server = await startRedis(directory);
  const close = async () => {
    await server.close();
    discard(directory);
  };
  return { url: `redis://127.0.0.1:${server.port}`, port: server.port, close };
}

/** Commands to Redis, as they are typed. @returns what it answers, as text */
export function typed(port, lines) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1', () => socket.write(`${[...lines, 'QUIT'].join('\r\n')}\r\n`));
    let text = '';
    socket.on('data', (piece) => {
      text += piece;
    });
    socket.on('end', () => resolve(text)).on('error', reject);
  });
}

export const postgres = () => startPostgres(findPostgres());

let installed;

/** The packages of other systems, installed once. @returns `{ require, directory }`, or the `problem` */
export function peers() {
  installed ??= installPeers();
  return installed.problem
    ? installed
    : { ...installed, require: createRequire(join(installed.directory, 'package.json')) };
}

/** A served queue, and the command run against it. */
export async function target() {
  const program = await kit();
  const server = await program.serve(['--state', join(program.folder, 'state')]);
  const listed = async (path, member) => (await ok(server.call('GET', path)))[member];
  return {
    server,
    program,
    /** Runs the command. @returns its exit code, and its report as JSON or its error */
    async migrate(args, { env = {}, cwd } = {}) {
      const at = { env: { TOCSIN_URL: server.url, ...env }, ...(cwd && { cwd }) };
      const run = await program.run(['migrate', ...args, '--json'], at);
      return { code: run.code, stderr: run.stderr, report: run.stdout === '' ? undefined : JSON.parse(run.stdout) };
    },
    /** The same for humans. */
    text: (args, { env = {}, cwd } = {}) =>
      program.run(['migrate', ...args], { env: { TOCSIN_URL: server.url, ...env }, ...(cwd && { cwd }) }),
    jobs: () => listed('/jobs?limit=100', 'jobs'),
    /** The text of an answer, in which numbers are as they were written. */
    textOf: async (path) => (await fetch(`${server.url}/ojs/v1${path}`)).text(),
    crons: () => listed('/cron?per_page=100', 'crons'),
    /** Fetches one job of a queue as a worker does, and completes it. */
    async runNext(queue) {
      const { jobs } = await ok(server.call('POST', '/workers/fetch', { queues: [queue], worker_id: 'tester' }));
      assert.equal(jobs.length, 1, `a job of ${queue} can be run`);
      await ok(server.call('POST', '/workers/ack', { job_id: jobs[0].id, result: 'done' }));
      return jobs[0];
    },
    close: () => program.close(),
  };
}

async function ok(answering) {
  const { status, body } = await answering;
  assert.ok(status < 300, JSON.stringify(body));
  return body;
}

/** A folder whose project has these packages. */
export function projectWith(directory) {
  const folder = scratch('tocsin-migrate-project-');
  symlinkSync(join(directory, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** The job that was made of another one. */
export function madeOf(jobs, id) {
  const found = jobs.filter((job) => job.meta.migrated_from?.id === id);
  assert.equal(found.length, 1, `one job is made of ${id}`);
  return found[0];
}

/** Counts by what is counted. */
export const counted = (list) => Object.fromEntries(list.map(({ what, count }) => [what, count]));

/** All rows of tables of PostgreSQL, to be compared. */
export async function rowsOf(db, tables) {
  const all = {};
  for (const table of tables) {
    const { rows } = await db.query(`SELECT to_jsonb(t)::text AS row FROM ${table} t ORDER BY 1`);
    all[table] = rows.map(({ row }) => row);
  }
  return all;
}
