/**
 * The floor: the least that any queue on this runtime must do. A bare Worker parses the body and calls an object, which
 * stores each group of requests that meet as one row and answers as fully as the queue does, or with a bare count. Its
 * sockets write two rows for each message before they answer it with jobs, and one for jobs that are enqueued over them, before
 * a worker is sent these or the handler is called. A fetch over HTTP writes the same two rows. It pushes batches to a handler, two
 * rows for each. Below `/client` it answers enqueues so that the client library understands.
 */
import { DurableObject } from 'cloudflare:workers';

const RETRY = {
  max_attempts: 3,
  backoff_strategy: 'exponential',
  initial_interval: 'PT1S',
  backoff_coefficient: 2,
  max_interval: 'PT5M',
  offset: 'PT0S',
  first_index: 1,
  jitter: { kind: 'multiply', min: 0.5, max: 1.5 },
  non_retryable_errors: [],
  on_exhaustion: 'discard',
  on_crash: 'retry',
};

/** As many members, and as long, as the queue's own. */
const envelope = (id, type, queue, args, at) => ({
  specversion: '1.0',
  id,
  type,
  queue,
  state: 'available',
  args,
  meta: {},
  priority: 0,
  attempt: 0,
  max_attempts: 3,
  retry_effective: RETRY,
  created_at: at,
  enqueued_at: at,
});

/** Of a job that was enqueued, what only the server knows. */
const receipts = (ids) => {
  const created_at = new Date().toISOString();
  return ids.map((id) => ({ id, state: 'available', max_attempts: 3, created_at }));
};

/** Characters of bodies in a row, as in a block of the queue; a request that has more is a row of its own. */
const ROW_CHARS = 256 * 1024;

const JSON_TYPE = { 'Content-Type': 'application/json' };

const idOf = (n) => `01a203b3-6924-7f40-b109-${String(n).padStart(12, '0')}`;
const ARGS = [{ to: 'someone@example.com', template: 'welcome', n: 1 }];

export class FloorObject extends DurableObject {
  #waiting = [];
  #isSettling = false;
  #last;
  /** The first job to be fetched. What was stored before an eviction has been. */
  #next;

  constructor(ctx, env) {
    super(ctx, env);
    const { sql } = ctx.storage;
    sql.exec(
      'CREATE TABLE IF NOT EXISTS blocks (head INTEGER PRIMARY KEY, jobs INTEGER NOT NULL, bodies TEXT NOT NULL)',
    );
    sql.exec('CREATE TABLE IF NOT EXISTS marks (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, jobs TEXT NOT NULL)');
    this.#last = sql.exec('SELECT coalesce(max(head + jobs), 0) AS n FROM blocks').one().n;
    this.#next = this.#last;
  }

  /**
   * Stores the jobs, together with those that arrive while earlier ones become durable.
   * @param chars of the request that brought them
   * @returns the number of the first
   */
  add(jobs, chars) {
    const first = this.#last + this.#waiting.reduce((sum, group) => sum + group.jobs.length, 0);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ jobs, chars, first, resolve, reject });
      if (!this.#isSettling) this.#store();
    });
  }

  #store() {
    const groups = this.#waiting;
    this.#waiting = [];
    try {
      for (const row of byRow(groups)) this.#insert(row.flatMap((group) => group.jobs));
      for (const { first, resolve } of groups) resolve(first);
    } catch (error) {
      for (const { reject } of groups) reject(error);
    }
    this.#isSettling = true;
    void this.ctx.storage.sync().then(() => {
      this.#isSettling = false;
      if (this.#waiting.length > 0) this.#store();
    });
  }

  #insert(jobs) {
    const head = this.#last;
    this.ctx.storage.sql.exec('INSERT INTO blocks VALUES (?, ?, ?)', head, jobs.length, JSON.stringify(jobs));
    this.#last += jobs.length;
    return head;
  }

  /** Reports come in, as many jobs that nobody stored go out. @returns the answer of a fetch */
  exchange(reports, count) {
    return JSON.stringify({ jobs: this.#exchanged(reports, count), reports: outcomes(reports) });
  }

  /** Reports come in, and the jobs of the next row go out, as they were stored: nothing is parsed. @returns as above */
  take(reports) {
    const query = 'SELECT head, jobs, bodies FROM blocks WHERE head >= ? ORDER BY head LIMIT 1';
    const [{ head, jobs, bodies } = { head: this.#next, jobs: 0, bodies: '[]' }] = this.ctx.storage.sql
      .exec(query, this.#next)
      .toArray();
    this.#next = head + jobs;
    const at = new Date().toISOString();
    const heads = Array.from({ length: jobs }, (_, n) => envelope(idOf(head + n), 'bench.noop', 'floor', [], at));
    this.#mark(reports);
    this.#mark(heads.map(({ id }) => id));
    const rest = JSON.stringify({ heads, reports: outcomes(reports) });
    return `{"jobs":${bodies},${rest.slice(1)}`;
  }

  /** Stores nothing, and answers as much as {@link add}. */
  pass() {
    return this.#last;
  }

  /** How many jobs are stored. */
  count() {
    return this.ctx.storage.sql.exec('SELECT coalesce(sum(jobs), 0) AS n FROM blocks').one().n;
  }

  fetch(request) {
    const [client, server] = Object.values(new WebSocketPair());
    this.ctx.acceptWebSocket(server);
    const protocol = request.headers.get('Sec-WebSocket-Protocol');
    const headers = protocol === null ? {} : { 'Sec-WebSocket-Protocol': protocol };
    return new Response(null, { status: 101, webSocket: client, headers });
  }

  webSocketMessage(socket, text) {
    const message = JSON.parse(text);
    if (message.type === 'push') return this.#pushed(socket, message);
    if (message.type === 'enqueue') this.#enqueued(socket, message);
    else this.#reported(socket, message);
  }

  #reported(socket, { reports, ready }) {
    socket.send(JSON.stringify({ type: 'jobs', reported: reports.length, jobs: this.#exchanged(reports, ready) }));
  }

  /** What ended and what is leased are a row each. @returns as many jobs */
  #exchanged(reports, count) {
    const jobs = noops(count);
    this.#mark(reports);
    this.#mark(jobs.map(({ id }) => id));
    return jobs;
  }

  /** Jobs come in, and go out to everybody else: a row before, with the jobs and who has them. */
  #enqueued(socket, { id, jobs }) {
    confirm(socket, id, this.#keep(jobs));
    const others = this.ctx.getWebSockets().filter((other) => other !== socket);
    for (const other of others) other.send(JSON.stringify({ type: 'jobs', jobs: noops(jobs.length) }));
  }

  /** Jobs come in, and go out to the handler: a row before, one after. */
  async #pushed(socket, { id, jobs }) {
    const ids = this.#keep(jobs);
    confirm(socket, id, ids);
    const at = new Date().toISOString();
    this.#mark(await this.#call(jobs.map(({ type, args }, n) => envelope(ids[n], type, 'floor', args, at))));
  }

  /** @returns the ids of the jobs */
  #keep(jobs) {
    const head = this.#insert(jobs);
    return jobs.map((_, n) => idOf(head + n));
  }

  /** @returns what the handler says of each job */
  async #call(jobs) {
    const call = { method: 'POST', body: JSON.stringify({ jobs }), headers: JSON_TYPE };
    const answer = await this.env.HANDLER.fetch('http://handler/', call);
    return (await answer.json()).results;
  }

  /** Pushes jobs, several batches at once. */
  async push(count, size, atOnce) {
    let left = count;
    const line = async () => {
      while (left > 0) {
        const jobs = noops(Math.min(size, left));
        left -= jobs.length;
        this.#mark(jobs.map(({ id }) => id));
        this.#mark(await this.#call(jobs));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, line));
  }

  #mark(what) {
    this.ctx.storage.sql.exec('INSERT INTO marks (at, jobs) VALUES (?, ?)', Date.now(), JSON.stringify(what));
  }
}

/** Answers an enqueue over a socket. @param id of the message */
function confirm(socket, id, ids) {
  const jobs = receipts(ids);
  socket.send(JSON.stringify({ type: 'enqueued', id, jobs, count: ids.length, enqueued: ids.length, failed: 0 }));
}

/** Groups whose jobs share a row. */
function byRow(groups) {
  const rows = [];
  let chars = Number.POSITIVE_INFINITY;
  for (const group of groups) {
    chars += group.chars;
    if (chars > ROW_CHARS) {
      rows.push([]);
      chars = group.chars;
    }
    rows.at(-1).push(group);
  }
  return rows;
}

/** What the queue answers to each report. */
function outcomes(reports) {
  const completed_at = new Date().toISOString();
  const items = reports.map(({ job_id }, index) => ({
    index,
    job_id,
    status: 'done',
    state: 'completed',
    attempt: 1,
    completed_at,
  }));
  return { total: items.length, succeeded: items.length, failed: 0, items };
}

function noops(count) {
  const at = new Date().toISOString();
  return Array.from({ length: count }, (_, n) => envelope(idOf(n), 'bench.noop', 'floor', ARGS, at));
}

export default {
  async fetch(request, env) {
    const [, step] = request.url.split('/steps/');
    if (step !== undefined) return answerStep(step, request, env);
    const { pathname, searchParams } = new URL(request.url);
    const queue = (name) => env.FLOOR.getByName(name);
    if (pathname === '/ojs/v1/health') return Response.json({ status: 'ok' });
    if (pathname === '/bench/clock') return Response.json(Date.now());
    if (pathname.startsWith('/count/')) return Response.json({ count: await queue(pathname.slice(7)).count() });
    if (pathname.startsWith('/socket/')) return queue(pathname.slice(8)).fetch(request);
    if (pathname.endsWith('/workers/socket')) return queue(searchParams.get('queue')).fetch(request);
    if (pathname.endsWith('/workers/fetch')) {
      const { queues, reports = [], count } = JSON.parse(await request.text());
      const from = queue(queues[0]);
      const text = await (pathname.startsWith('/invented/') ? from.exchange(reports, count) : from.take(reports));
      return new Response(text, { headers: JSON_TYPE });
    }
    if (pathname.endsWith('/workers/report')) {
      const { reports } = JSON.parse(await request.text());
      return Response.json(outcomes(reports));
    }
    if (pathname === '/push') {
      const { count, size, at_once } = await request.json();
      await queue('push').push(count, size, at_once);
      return Response.json({});
    }
    const text = await request.text();
    const body = JSON.parse(text);
    const jobs = body.jobs ?? [body];
    const name = jobs[0].options.queue;
    const first = await queue(name).add(jobs, text.length);
    if (pathname.startsWith('/client/')) {
      const told = receipts(jobs.map((_, n) => idOf(first + n)));
      const answer = body.jobs
        ? { jobs: told, count: told.length, enqueued: told.length, failed: 0 }
        : { job: told[0] };
      return new Response(JSON.stringify(answer), { status: 201, headers: JSON_TYPE });
    }
    if (request.headers.get('Prefer') === 'return=minimal') {
      return new Response(JSON.stringify({ first, count: jobs.length }), { status: 201, headers: JSON_TYPE });
    }
    const at = new Date().toISOString();
    const full = jobs.map(({ type, args }, n) => envelope(idOf(first + n), type, name, args, at));
    const answer = body.jobs ? { jobs: full, enqueued: full.length, failed: 0 } : { job: full[0], ...head(full[0]) };
    return new Response(JSON.stringify(answer), { status: 201, headers: JSON_TYPE });
  },
};

/** A part of what a single enqueue takes: `empty` answers at once, `read` parses the body, `call` asks an object as well. */
async function answerStep(step, request, env) {
  if (step === 'empty') return new Response('{}', { headers: JSON_TYPE });
  const { type, args, options } = JSON.parse(await request.text());
  const first = step === 'call' ? await env.FLOOR.getByName(options.queue).pass() : 0;
  const full = envelope(idOf(first), type, options.queue, args, new Date().toISOString());
  return new Response(JSON.stringify({ job: full, ...head(full) }), { status: 201, headers: JSON_TYPE });
}

/** What the answer to a single job repeats beside it. */
function head({ id, type, queue, state, attempt, priority, created_at }) {
  return { id, type, queue, state, attempt, priority, created_at };
}
