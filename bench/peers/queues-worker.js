/**
 * Producer and consumer in one Worker, so that both see the same variables. The simulator refuses messages while 10,000
 * wait for it, so enqueueing and draining go by rounds of somewhat less: the consumer is held up while messages are sent,
 * then released; each is timed alone.
 */
const BODY = { to: 'someone@example.com', template: 'welcome', n: 1 };
const JSON_TYPE = { contentType: 'json' };
const BATCH = 100;
const MAX_WAITING = 9_800;

/** What the consumer does with a batch, by queue; nothing where there is no entry. */
const consume = {};
const untilTrue = async (condition) => {
  while (!condition()) await scheduler.wait(1);
};

const batchOf = (count, delaySeconds) =>
  Array.from({ length: count }, () => ({ body: BODY, ...JSON_TYPE, ...(delaySeconds && { delaySeconds }) }));

/**
 * Holds the consumer up, lets `send` bring messages, then releases it and waits until all have been consumed.
 * @returns ms that sending took, and ms from the release to the end
 */
async function round(name, queue, jobs, send) {
  let left = jobs;
  let isHeld = false;
  let isOpen = false;
  let endedAt = 0;
  consume[name] = async (messages) => {
    if (!isHeld) {
      isHeld = true;
      await untilTrue(() => isOpen);
      return;
    }
    left -= messages.length;
    if (left <= 0) endedAt = Date.now();
  };
  await queue.send(BODY, JSON_TYPE);
  await untilTrue(() => isHeld);
  const begunAt = Date.now();
  await send();
  const openedAt = Date.now();
  isOpen = true;
  await untilTrue(() => endedAt > 0);
  return { sendMs: openedAt - begunAt, drainMs: endedAt - openedAt };
}

/** Sends for about `ms` in all, as much in a round as the simulator holds; `callers` at once, `size` messages to a call. */
async function repeat(name, queue, { ms, callers, size }, send) {
  const calls = MAX_WAITING / size;
  let sent = 0;
  let spent = 0;
  while (spent < ms) {
    let left = calls;
    const caller = async () => {
      while (left-- > 0) await send();
    };
    const { sendMs } = await round(name, queue, calls * size, () =>
      Promise.all(Array.from({ length: callers }, caller)),
    );
    sent += calls * size;
    spent += sendMs;
  }
  return { per_s: Math.round((sent * 1000) / spent) };
}

const MEASURES = {
  single(env, query) {
    const shape = { ms: Number(query.get('ms')), callers: 64, size: 1 };
    return repeat('single', env.SINGLE, shape, () => env.SINGLE.send(BODY, JSON_TYPE));
  },

  bulk(env, query) {
    const batch = batchOf(BATCH);
    const shape = { ms: Number(query.get('ms')), callers: 4, size: BATCH };
    return repeat('bulk', env.BULK, shape, () => env.BULK.sendBatch(batch));
  },

  async drain(env, query) {
    const jobs = Number(query.get('jobs'));
    const batch = batchOf(BATCH);
    let spent = 0;
    for (let done = 0; done < jobs; ) {
      const portion = Math.min(MAX_WAITING, jobs - done);
      const { drainMs } = await round('drain', env.DRAIN, portion, async () => {
        for (let sent = 0; sent < portion; sent += BATCH) await env.DRAIN.sendBatch(batch.slice(0, portion - sent));
      });
      spent += drainMs;
      done += portion;
    }
    return { per_s: Math.round((jobs * 1000) / spent) };
  },

  async due(env, query) {
    const jobs = Number(query.get('jobs'));
    const late = [];
    consume.due = async (messages) => {
      const now = Date.now();
      for (const { body } of messages) late.push(now - body.dueAt);
    };
    for (let done = 0; done < jobs; done += BATCH) {
      const dueAt = Date.now() + 2_000;
      await env.DUE.sendBatch(batchOf(BATCH, 2).map((message) => ({ ...message, body: { dueAt } })));
    }
    await untilTrue(() => late.length >= jobs);
    return { late };
  },
};

/** The latency scenario enqueues as it does into Tocsin, and waits for the callback. */
async function start(request, env) {
  const { args } = await request.json();
  consume.start ??= async (messages) => {
    for (const { body } of messages) {
      const startedAt = Date.now();
      const response = await fetch(`http://127.0.0.1:${body.port}/${body.n}/${startedAt}`);
      await response.text();
    }
  };
  await env.START.send(args[0], JSON_TYPE);
  return new Response(null, { status: 201 });
}

export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === '/ojs/v1/jobs') return start(request, env);
    if (url.pathname === '/bench/clock') return Response.json(Date.now());
    const measure = MEASURES[url.pathname.slice(1)];
    return measure
      ? Response.json(await measure(env, url.searchParams))
      : new Response('No such route.', { status: 404 });
  },
  async queue(batch) {
    await consume[batch.queue]?.(batch.messages);
  },
};
