// What `tocsin top` shows and does, without a terminal: text, keys, pages, actions.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, it } from 'node:test';
import { load } from './cli.mjs';

const MODULES = ['actions', 'happen', 'model', 'perform', 'press', 'render', 'run', 'style', 'text'];
const { createApi } = await load('top/api.ts');
const top = await load(...MODULES.map((name) => `top/${name}.ts`), '../producer/errors.ts');
const {
  widthOf,
  cutTo,
  fitTo,
  foreign,
  keysIn,
  painted,
  bare,
  render,
  begin,
  press,
  arrived,
  received,
  failed,
  counted,
} = top;
const { offersOf, requestsOf, previewsOf, perform, tabsOf, UnauthorizedError } = top;

const NOW = Date.parse('2026-01-01T12:00:00.000Z');
const ADMIN = {
  ...{ authenticated: true, open: true, name: null, role: 'admin' },
  scopes: ['data:read', 'data:write', 'admin:read', 'admin:write', 'admin:purge'],
};
const VIEWER = { ...ADMIN, role: 'viewer', name: 'bob', scopes: ['data:read', 'admin:read'] };
const URL = 'http://queue.example';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const STEERS = /[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\u200d/;

const job = (id, state = 'available', more = {}) => ({
  ...{ id, state, type: 'email.send', queue: 'mail', priority: 0, attempt: 0, maxAttempts: 3 },
  createdAt: '2026-01-01T11:59:00.000Z',
  ...more,
});
const jobsAnswer = (...items) => ({ items, total: items.length, counts: { available: items.length } });
const queueItem = (name, more = {}) => ({
  ...{ name, status: 'active', paused: false, counts: { available: 2, active: 1 }, errorRate: 0 },
  throughput: { processedPerMinute: 6, failedPerMinute: 0, enqueuedPerMinute: 6 },
  latencyMs: { p50: 1, p95: 12, p99: 13 },
  queueTimeMs: { p95: 5 },
  oldestAvailableAt: null,
  concurrency: { limit: null, active: 1 },
  ...more,
});
const event = (type, data, id = `evt_${type}`) => ({ id, type, subject: '', time: '2026-01-01T12:00:00.000Z', data });

/** A page with its answer. */
function at(place, answer, session = ADMIN) {
  const { state } = begin(session, place);
  return arrived(state, state.serial, () => answer, true).state;
}

/** Presses keys one after the other. @returns the last state, and all effects */
function type(state, ...keys) {
  const effects = [];
  let now = state;
  for (const key of keys) {
    const next = press(now, key, NOW);
    now = next.state;
    effects.push(...next.effects);
  }
  return { state: now, effects };
}

const screen = (state, width = 100, height = 16) =>
  render(state, { width, height, url: URL }, NOW).map((line) => bare(line).trimEnd());

describe('text of top', () => {
  it('counts columns as terminals do', () => {
    const cases = [
      ['abc', 3],
      ['日本語', 6],
      ['e\u0301', 1],
      ['🎉', 2],
      ['ﾊﾝｶｸ', 4],
      ['한글', 4],
      ['–…→', 3],
      ['🇩🇪', 2],
    ];
    for (const [text, width] of cases) assert.equal(widthOf(text), width, text);
  });

  it('cuts and pads to exactly a width, never through a character', () => {
    assert.equal(cutTo('日本語', 4), '日…');
    assert.equal(cutTo('abc', 3), 'abc');
    assert.equal(fitTo('日本語', 4), '日… ');
    assert.equal(fitTo('7', 3, true), '  7');
    assert.equal(cutTo('abc', 0), '');
  });

  it('lets nothing through that steers a terminal or turns its direction', () => {
    const hostile = foreign('\x1b[31mred\x1b]0;title\x07 \u202eevil\u2066 a\r\nb \x9b2J 👨\u200d👩\u200d👧');
    assert.doesNotMatch(hostile, STEERS);
    assert.equal(widthOf(foreign('👨\u200d👩\u200d👧')), 6, 'what is joined is shown one by one');
  });

  it('reads keys from what a terminal sends', () => {
    assert.deepEqual(keysIn('gj\x1b[B\x1bOA\r\x1b'), ['g', 'j', 'Down', 'Up', 'Enter', 'Escape']);
    assert.deepEqual(keysIn('\x03\x7f\t\x1b[Z日'), ['C-c', 'Backspace', 'Tab', 'BackTab', '日']);
    assert.deepEqual(keysIn('\x1b[1;5C\x1b[200~\x00'), [], 'what means nothing is left out whole');
  });

  it('shows no colour with NO_COLOR, but still which row is at', () => {
    const line = [
      { text: 'a', tone: 'bad' },
      { text: 'b', tone: 'chosen' },
    ];
    assert.equal(painted(line, false), 'a\x1b[7mb\x1b[0m');
    assert.ok(painted(line, true).startsWith('\x1b[31ma'));
  });
});

describe('the screen of top', () => {
  it('fills every window exactly and never writes beyond its width, whatever jobs are called', () => {
    const hostile = job('01a2', 'discarded', {
      type: '日本語の仕事'.repeat(20),
      queue: '\x1b[2Jq',
      error: { type: 'Ünïcode', message: `\u202e${'x🎉'.repeat(500)}` },
    });
    const pages = [
      at({ page: 'jobs' }, jobsAnswer(hostile, job('01a3'))),
      at({ page: 'queues' }, { items: [queueItem('q'.repeat(255)), queueItem('שלום')], total: 2 }),
      type(at({ page: 'jobs' }, jobsAnswer(hostile)), 'c').state,
      type(at({ page: 'jobs' }, jobsAnswer(hostile)), '?').state,
      type(at({ page: 'jobs' }, jobsAnswer(hostile)), '/', ...'日本語'.repeat(60)).state,
      begin(ADMIN).state,
    ];
    for (const state of pages) {
      for (const [width, height] of [
        [200, 50],
        [80, 24],
        [40, 10],
        [20, 6],
        [9, 3],
        [1, 1],
      ]) {
        const lines = render(state, { width, height, url: URL }, NOW);
        assert.equal(lines.length, height);
        for (const line of lines) {
          assert.ok(widthOf(bare(line)) <= width, `${widthOf(bare(line))} in ${width}: ${bare(line)}`);
          assert.doesNotMatch(bare(line), STEERS);
        }
      }
    }
  });

  it('leaves out columns that matter least where the window is narrow', () => {
    const state = at({ page: 'queues' }, { items: [queueItem('mail')], total: 1 });
    assert.match(screen(state, 130)[2], /QUEUE +STATUS +AVAILABLE +ACTIVE .*P95 +OLDEST/);
    const narrow = screen(state, 44)[2];
    assert.match(narrow, /QUEUE +STATUS +AVAILABLE/);
    assert.doesNotMatch(narrow, /P95/);
    assert.match(screen(state, 44)[0], /^ Queues {3}g: other pages$/, 'the tab that is at keeps its name');
    assert.match(screen(type(state, 'g').state, 44)[0], /^ o q Queues j f/);
  });

  it('keeps the row that is at in sight', () => {
    const many = jobsAnswer(...Array.from({ length: 40 }, (_, n) => job(`id-${n}`)));
    const { state } = type(at({ page: 'jobs' }, many), 'End');
    assert.ok(screen(state).some((line) => line.includes('id-39')));
    assert.ok(screen(type(state, 'Home').state).some((line) => line.includes('id-0 ')));
  });

  it('shows the totals, the oldest job, maintenance and handlers that are down', () => {
    const waitingFor = {
      reason: 'no_handler',
      since: '2026-01-01T11:00:00.000Z',
      detail: 'No handler takes email.send.',
    };
    const firing = { queue: 'mail', state: 'firing', since: '2026-01-01T11:57:00.000Z', lastValue: 0.5 };
    const answer = {
      alerts: [
        {
          name: 'mail fails',
          metric: 'error_rate',
          above: 0.2,
          queues: [firing, { ...firing, queue: 'api', state: 'ok' }],
        },
      ],
      items: [queueItem('mail', { oldestAvailableAt: '2026-01-01T11:00:00.000Z', waitingFor }), queueItem('api')],
      total: 2,
      maintenance: { enabled: true, reason: 'moving\x1b[2J', startedAt: '2026-01-01T11:50:00.000Z', endsAt: null },
      targets: [
        { name: 'EMAIL', state: 'stopped', lastError: 'ECONNREFUSED' },
        { name: 'SMS', state: 'up' },
      ],
      workers: { total: 3, stale: 1 },
    };
    const text = screen(at({ page: 'overview' }, answer), 140, 24).join('\n');
    assert.match(text, /maintenance +since 10m ago: moving\ufffd/);
    assert.match(text, /alert +mail fails: error rate was 50 %, above 20 %, in mail, fires since 3m ago/);
    assert.doesNotMatch(text, /in api/);
    assert.match(text, /waits +mail: No handler takes email\.send\./);
    assert.match(text, /jobs +available 4 · active 2\n/);
    assert.match(text, /12 enqueued · 12 done · 0 failed/);
    assert.match(text, /oldest waits +1h/);
    assert.match(text, /handler down +EMAIL stopped ECONNREFUSED/);
    assert.doesNotMatch(text, /SMS/);
    assert.match(text, /m end maintenance/);
  });
});

describe('keys of top', () => {
  const list = () => at({ page: 'jobs' }, jobsAnswer(job('a'), job('b', 'discarded'), job('c')));

  it('goes to pages by g and a letter, as the dashboard does', async () => {
    const dashboard = await import('node:fs').then(({ readFileSync }) => readFileSync('src/ui/pages/table.ts', 'utf8'));
    for (const { id, key } of tabsOf(ADMIN)) {
      const { state, effects } = type(list(), 'g', key);
      assert.equal(state.place.page, id);
      assert.deepEqual(effects[0]?.do, 'load');
      const path = id === 'overview' ? '' : id;
      assert.match(dashboard, new RegExp(`path: '${path}',\\s+title: '[^']+',\\s+key: '${key}'`));
    }
  });

  it('opens a job, and comes back to its row', () => {
    const opened = type(list(), 'j', 'Enter');
    assert.deepEqual(opened.state.place, { page: 'job', name: 'b' });
    const back = type(opened.state, 'Escape').state;
    assert.equal(back.place.page, 'jobs');
    const there = arrived(back, back.serial, () => jobsAnswer(job('new'), job('a'), job('b')), true).state;
    assert.match(screen(there).find((line) => line.includes(' b ')) ?? '', /b/);
    assert.equal(type(there, 'Enter').state.place.name, 'b', 'at its row, although another came before it');
  });

  it('searches on the server in jobs, and among the rows elsewhere', () => {
    const { state, effects } = type(list(), '/', ...'smtp x', 'Backspace', 'Backspace', 'Enter');
    assert.equal(state.place.q, 'smtp');
    assert.equal(effects.at(-1).place.q, 'smtp');
    const queues = at({ page: 'queues' }, { items: [queueItem('mail'), queueItem('api')], total: 2 });
    const sifted = type(queues, '/', ...'API', 'Enter');
    assert.deepEqual(sifted.effects, []);
    assert.ok(!screen(sifted.state).some((line) => line.includes('mail')));
    assert.ok(screen(type(sifted.state, 'Escape').state).length > 0);
  });

  it('goes through states', () => {
    const { state } = type(at({ page: 'failures' }, { items: [], total: 0, searched: 0, more: false }), 's', 's');
    assert.equal(state.place.state, 'discarded');
    assert.equal(type(state, 's', 's').state.place.state, undefined);
  });

  it('retries a job at once, and asks before it cancels one', () => {
    const retried = type(list(), 'j', 'r');
    assert.deepEqual(
      retried.effects.map((effect) => requestsOf(effect.wish)),
      [[{ method: 'POST', path: '/admin/jobs/b/retry' }]],
    );
    const asked = type(list(), 'c');
    assert.deepEqual(asked.effects, []);
    assert.ok(screen(asked.state).some((line) => line.includes('Cancel a? y: yes')));
    assert.deepEqual(type(asked.state, 'n').effects, []);
    assert.equal(type(asked.state, 'y').effects[0].do, 'act');
    assert.deepEqual(type(list(), 'r').effects, [], 'a job that waits cannot be retried');
  });

  it('counts beforehand what a selection or all that match would be', () => {
    const chosen = type(list(), 'x', 'j', 'j', 'x', 'c');
    const [{ do: does, wish }] = chosen.effects;
    assert.equal(does, 'preview');
    assert.deepEqual(previewsOf(wish), [
      {
        method: 'POST',
        path: '/admin/jobs/bulk/cancel',
        body: { filter: { ids: ['a', 'c'] }, confirm: true, dry_run: true },
      },
    ]);
    const all = type(
      at({ page: 'queue', name: 'mail', q: 'smtp' }, { ...jobsAnswer(job('a')), queue: queueItem('mail') }),
      'A',
      'r',
    );
    assert.deepEqual(requestsOf(all.effects[0].wish)[0].body.filter, {
      ...{ q: 'smtp', queue: 'mail' },
      state: ['retryable', 'discarded', 'cancelled'],
    });
    const asked = counted(all.state, all.effects[0].wish, 1234, true).state;
    assert.ok(screen(asked).some((line) => line.includes('Retry 1,234 jobs? y: yes')));
    assert.match(counted(all.state, all.effects[0].wish, 0, true).state.notice.text, /No job/);
  });

  it('does not say what a key of a viewer may not do, and shows no page that it may not see', () => {
    assert.ok(offersOf(list(), NOW).length > 0);
    const viewer = at({ page: 'jobs' }, jobsAnswer(job('a', 'discarded')), VIEWER);
    assert.deepEqual(offersOf(viewer, NOW), []);
    assert.deepEqual(type(viewer, 'r').effects, []);
    assert.ok(screen(viewer).some((line) => line.includes('bob (viewer)')));
    const producer = { ...VIEWER, scopes: ['data:read'] };
    assert.ok(!tabsOf(producer).some(({ id }) => id === 'audit'));
    assert.equal(type(at({ page: 'limits' }, { items: [], total: 0 }, producer), 'g', 'a').state.place.page, 'limits');
  });

  it('shows a refusal as one', async () => {
    let { state } = type(list(), 'j', 'r');
    const refuse = async () => {
      throw new UnauthorizedError('This key needs admin:write.', { status: 403, code: 'forbidden', retryable: false });
    };
    const { effects } = type(list(), 'j', 'r');
    await perform(effects[0], { write: refuse, get: refuse }, URL, (change) => {
      state = change(state).state;
    });
    assert.ok(screen(state).some((line) => line.includes('Forbidden (403): This key needs admin:write.')));
  });

  it('shows how far an operation is, and stops it', async () => {
    let { state, effects } = type(list(), 'x', 'j', 'j', 'x', 'c');
    const [{ wish }] = effects;
    const asked = [];
    let tell;
    const api = {
      write: async ({ method, path }) => {
        asked.push(`${method} ${path}`);
        return method === 'DELETE' ? {} : { operationId: 'op', completed: false, matched: 2, succeeded: 1, failed: 0 };
      },
      get: () =>
        new Promise((resolve) => {
          tell = resolve;
        }),
    };
    const change = (next) => {
      state = next(state).state;
    };
    const acting = perform({ do: 'act', wish }, api, URL, change);
    while (!tell) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(screen(state).some((line) => line.includes('cancel 2 jobs: 1 of 2 … Esc stops it')));
    ({ state, effects } = type(state, 'Escape'));
    await perform(effects[0], api, URL, change);
    tell({ completed: true, aborted: true, matched: 2, succeeded: 1, failed: 0 });
    await acting;
    assert.deepEqual(asked, ['POST /admin/jobs/bulk/cancel', 'DELETE /jobs/bulk/op']);
    assert.equal(state.notice.text, 'cancel 2 jobs: 1 of 2, then stopped');
    assert.equal(type(state, 'x', 'Escape').effects.length, 0, 'there is nothing to stop any more');
  });

  it('shows only keys that work, and the letters of pages once g was pressed', () => {
    const hints = (state) => screen(state, 130).at(-2);
    assert.match(hints(list()), /Enter open {2}x select {2}s state {2}g pages {2}\/ search {2}\? help {2}q quit$/);
    assert.doesNotMatch(hints(at({ page: 'limits' }, { items: [], total: 0 })), /Enter|select|state/);
    assert.match(screen(list(), 130)[0], /^ Overview {2}Queues {2}Jobs/);
    const going = type(list(), 'g').state;
    assert.match(screen(going, 130)[0], /^ o Overview q Queues j Jobs .* t Settings/);
    assert.equal(type(going, 'q').state.place.page, 'queues', 'where it is named');
  });

  it('shows values in words, not as JSON', () => {
    const args = [{ to: 'ada', cc: ['bob', 'eve'] }];
    const story = {
      ...job('a', 'completed', { args, errors: [], attempts: [], children: { items: [] } }),
      timeline: [{ at: '2026-01-01T11:59:00.000Z', kind: 'progress', progress: 0.5, data: { page: 4 } }],
    };
    const text = screen(at({ page: 'job', name: 'a' }, story), 130, 30).join('\n');
    assert.match(text, /args +\(to: ada, cc: \(bob, eve\)\)/);
    assert.match(text, /progress +progress 0\.5 · data \(page: 4\)/);
    const backpressure = { enabled: false, strategy: 'reject', threshold: null, currentDepth: 0, state: 'normal' };
    const configuration = { maxDepth: 10, retention: { completed: '2d' }, backpressure };
    const queue = {
      ...queueItem('mail', { configuration }),
      waitingFor: { reason: 'starting', detail: 'It is about to.' },
    };
    const shown = screen(at({ page: 'queue', name: 'mail' }, { ...jobsAnswer(), queue }), 130, 30).join('\n');
    assert.match(shown, /settings +max depth: 10, retention: \(completed: 2d\) *\n/);
    assert.match(shown, /why +It is about to\./);
    assert.doesNotMatch(text + shown, /[{}"]/);
  });

  it('goes back by q where a page was opened from another, and quits elsewhere', () => {
    const opened = type(list(), 'j', 'Enter').state;
    assert.match(screen(opened).at(-2), /q back$/);
    const { state, effects } = type(opened, 'q');
    assert.equal(state.place.page, 'jobs');
    assert.deepEqual(
      effects.map((effect) => effect.do),
      ['load'],
    );
    assert.deepEqual(type(list(), 'q').effects, [{ do: 'quit' }]);
    assert.deepEqual(type(list(), '/', 'C-c').effects, [{ do: 'quit' }]);
  });
});

describe('live updates of top', () => {
  const jobsPage = () => at({ page: 'jobs' }, jobsAnswer(job('a'), job('b')));

  it('asks about the rows that an event is of, and counts what is newer', () => {
    const events = [
      event('job.started', { job_id: 'b', queue: 'mail' }),
      event('job.enqueued', { job_id: 'n', queue: 'mail' }),
    ];
    const { state, effects } = received(jobsPage(), events);
    assert.deepEqual(
      effects.map(({ do: does, names }) => [does, names]),
      [['ask', ['b']]],
    );
    assert.ok(screen(state).some((line) => line.includes('1 newer: u')));
  });

  it('asks nothing for what is not shown', () => {
    assert.deepEqual(received(jobsPage(), [event('job.completed', { job_id: 'other', queue: 'mail' })]).effects, []);
    const queue = at({ page: 'queue', name: 'mail' }, { ...jobsAnswer(job('a')), queue: queueItem('mail') });
    assert.deepEqual(received(queue, [event('job.completed', { job_id: 'x', queue: 'other' })]).effects, []);
  });

  it('asks only the queues in which something happened', () => {
    const queues = at({ page: 'queues' }, { items: [queueItem('mail'), queueItem('api')], total: 2 });
    const { effects } = received(queues, [event('job.completed', { queue: 'api' })]);
    assert.deepEqual(
      effects.map(({ names }) => names),
      [['api']],
    );
    const [load] = received(queues, [event('job.enqueued', { queue: 'new' })]).effects;
    assert.equal(load.do, 'load', 'a queue that is new');
  });

  it('asks again for what happens while it asks', () => {
    const asking = received(jobsPage(), [event('job.started', { job_id: 'b' }, 'e1')]).state;
    const more = received(asking, [event('job.completed', { job_id: 'b' }, 'e2')]);
    assert.deepEqual(more.effects, []);
    const next = arrived(more.state, more.state.serial, (answer) => answer, false);
    assert.deepEqual(
      next.effects.map(({ names }) => names),
      [['b']],
    );
  });

  it('loads again where events may be missing', () => {
    assert.equal(received(jobsPage(), [event('system.gap', {})]).effects[0].do, 'load');
  });

  it('holds events while it is paused', () => {
    const paused = type(jobsPage(), '.').state;
    const { state, effects } = received(paused, [event('job.started', { job_id: 'b' })]);
    assert.deepEqual(effects, []);
    assert.ok(screen(state).some((line) => line.includes('paused, 1 held')));
    assert.deepEqual(
      type(state, '.').effects.map(({ names }) => names),
      [['b']],
    );
  });

  it('does not look at an answer that comes too late, and keeps what it shows when a load fails', () => {
    const { state } = type(jobsPage(), 'g', 'q');
    assert.equal(arrived(state, state.serial - 1, () => jobsAnswer(job('a')), true).state.answer, undefined);
    const page = jobsPage();
    const broken = failed(page, page.serial, { message: 'No queue answers.' }).state;
    const lines = screen(broken).join('\n');
    assert.match(lines, /No queue answers/);
    assert.match(lines, /email\.send/);
  });
});

describe('the events that top follows', () => {
  /** A server that streams what `parts` has for each connection, and breaks it off then. */
  async function streaming(parts, work) {
    const requests = [];
    const server = createServer((request, response) => {
      const text = parts[requests.length];
      requests.push(request);
      if (text === undefined) return;
      const isRefused = typeof text !== 'string';
      response.writeHead(isRefused ? 422 : 200, {
        'Content-Type': isRefused ? 'application/json' : 'text/event-stream',
      });
      if (isRefused) response.end(JSON.stringify(text));
      else response.write(text, () => response.destroy());
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const stop = new AbortController();
    const api = createApi({ url: `http://127.0.0.1:${server.address().port}/below/`, key: 'k' }, stop.signal);
    const connections = [];
    const events = api.follow((error) => connections.push(error ? 'lost' : 'live'));
    try {
      return await work(events, connections, requests);
    } finally {
      stop.abort();
      await events.return();
      server.closeAllConnections();
      server.close();
    }
  }

  const sent = (id, type = 'job.started') =>
    `retry: 10\nid: ${id}\ndata: ${JSON.stringify({ specversion: '1.0', id, type, data: { job_id: 'j', queue: 'mail' } })}\n\n`;

  it('come once each, with the key of the request, and continue after the last one', async () => {
    const first = sent('1', 'job.state_changed') + sent('2') + sent('2') + sent('3');
    await streaming([first, sent('3') + sent('4')], async (events, connections, requests) => {
      const ids = [];
      while (ids.length < 3) ids.push((await events.next()).value);
      assert.deepEqual(
        ids.map(({ id, data }) => [id, data.job_id]),
        [
          ['2', 'j'],
          ['3', 'j'],
          ['4', 'j'],
        ],
      );
      assert.equal(requests[0].headers.authorization, 'Bearer k');
      assert.match(requests[0].url, /^\/below\/ojs\/v1\/events\/stream/);
      assert.equal(requests[1].headers['last-event-id'], '3');
      assert.deepEqual(connections, ['live', 'lost', 'live']);
    });
  });

  it('end with the refusal of the server', async () => {
    const error = { code: 'unprocessable', message: 'There are too many queues.', retryable: false };
    await streaming([{ error }], async (events) => {
      await assert.rejects(events.next(), /too many queues/);
    });
  });
});
