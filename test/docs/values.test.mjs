// Numbers that the documents name are those of the code: bounds, defaults, times. Each line here is a sentence as it must stand.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { constant, load, read } from './source.mjs';

const { AUDIT_BOUNDS, DEFAULTS, STORAGE_BOUNDS, PRESETS, TARGET_DEFAULTS } = await load(
  'settings.ts',
  'job/retry/presets.ts',
  'dispatch/config.ts',
  'directory/audit.ts',
);

const DAY = 86_400_000;
const kib = (bytes) => `${bytes / 1024} KiB`;
const mib = (bytes) => `${bytes / 1_048_576} MiB`;
const seconds = (ms) => ms / 1000;
const minutes = (ms) => ms / 60_000;
const days = (ms) => ms / DAY;

const job = (path, name) => constant(`job/${path}.ts`, name);
const http = (path, name) => constant(`http/${path}.ts`, name);
const queue = (path, name) => constant(`queue/${path}.ts`, name);
const own = (path, name) => constant(`${path}.ts`, name);

const { retention, deadLetter } = DEFAULTS;
const jobBytes = job('envelope/names', 'MAX_ENVELOPE_BYTES');
const metaBytes = job('envelope/names', 'MAX_META_BYTES');
const batch = job('envelope/names', 'MAX_BATCH_SIZE');
const logLines = job('log', 'MAX_LOG_LINES');
const logBytes = kib(job('log', 'MAX_LOG_BYTES'));
const stepBytes = kib(job('steps', 'MAX_STEPS_BYTES'));
const steps = job('steps', 'MAX_STEPS');
const queuesAtOnce = constant('rpc/directory.ts', 'MAX_QUEUES_AT_ONCE');
const ids = http('request/filter/conditions', 'MAX_IDS');

/** Bytes below which a queue deletes no ended job early, and the lines of the page that follow from them. */
const pruneBytes = STORAGE_BOUNDS.max * queue('store/storage', 'PRUNE_FROM');
const DAY_SECONDS = 86_400;
const whole = (number) => Math.floor(number).toLocaleString('en');
const dollars = (number) => number.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const tenth = (number) => number.toLocaleString('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const line = (...cells) => cells.map(([text, width]) => text.padStart(width)).join('  ');
const stored = (bytes) => {
  const rates = [7, 1, 1 / 24].map((length) => pruneBytes / (bytes * length * DAY_SECONDS));
  const [week, day, hour] = rates.map((rate) => (rate < 1 ? '–' : whole(rate)));
  return line([whole(bytes), 15], [week, 6], [day, 5], [hour, 6]);
};
const costs = (rate) => {
  const [millions, week] = [(rate * 30 * DAY_SECONDS) / 1e6, 227 * rate * 7 * DAY_SECONDS];
  const prices = [dollars(millions * 0.07), dollars(millions * 2.58)];
  const space = [tenth(week / 1e9), String(Math.ceil(week / pruneBytes))];
  return line([whole(rate), 13], [tenth(millions), 14], [prices[0], 10], [prices[1], 8], [space[0], 10], [space[1], 6]);
};

const TAGS = /tags: readList\((\d+), readName\((\d+)\)\)/.exec(read('src/job/envelope/option-readers.ts')).slice(1);

const turnChanges = Number(/turnChanges: (\d+)/.exec(read('src/queue/store/sizes.ts'))[1]);

/** By page; digits are grouped there by a comma, a space, or not at all. */
const SAID = {
  'docs/reference/guarantees.md': [
    `A job (its request body): ${mib(jobBytes)};`,
    `\`meta\`: ${kib(metaBytes)}. A result: ${mib(job('envelope/names', 'MAX_RESULT_BYTES'))}.`,
    `A batch: ${batch} jobs, ${mib(http('request/body', 'MAX_BATCH_BYTES'))}, ${mib(job('message', 'MAX_JOBS_BYTES'))} once stored`,
    `one request returns in place of new ones: ${job('message', 'MAX_EXISTING_CHARS') / 1_048_576} Mi characters`,
    `Jobs fetched at once: ${http('workers/fetch', 'MAX_COUNT')};`,
    `A job type: ${job('envelope/names', 'MAX_TYPE_LENGTH')} characters. A queue name: ${job('envelope/names', 'MAX_QUEUE_LENGTH')} characters.`,
    `Tags: ${TAGS[0]}, of ${TAGS[1]} characters each;`,
    `Events: the newest ${constant('durable/event-log.ts', 'KEPT_EVENTS')} per queue`,
    `A pushed run: ${minutes(queue('features/push/target', 'MAX_TIMEOUT_MS'))} minutes;`,
    `The wait of a fetch (\`wait_ms\`): ${seconds(http('workers/fetch', 'MAX_WAIT_MS'))} s;`,
    `the newest ${queue('jobs/end-attempt', 'MAX_ERRORS')} entries, ${kib(queue('jobs/end-attempt', 'MAX_HISTORY_BYTES'))};`,
  ],
  'docs/reference/configuration.md': [
    `${STORAGE_BOUNDS.min} – ${STORAGE_BOUNDS.max} bytes. Near it`,
    `jobs in one call, 1 – 100. Default: ${TARGET_DEFAULTS.batchSize}.`,
    `limit of a run, 1 – ${queue('features/push/target', 'MAX_TIMEOUT_MS')}, where neither`,
    `sets one. Default: ${TARGET_DEFAULTS.timeoutMs}.`,
    `jobs pushed to handlers at once. Default: ${DEFAULTS.concurrency}.`,
    `a duration such as \`"10m"\`. Default: ${minutes(DEFAULTS.visibilityMs)} minutes.`,
    `Default: ${days(retention.completed)}, ${days(retention.discarded)} and ${days(retention.cancelled)} days.`,
    `Default: ${days(deadLetter.maxAge)} days, ${deadLetter.maxCount}.`,
  ],
  'docs/guides/retries.md': [
    `runs in all, the first included; 0 acts as 1. Default: ${PRESETS.ojs.max_attempts}.`,
    `\`backoff_coefficient\`: 1 – ${job('retry/layer', 'MAX_COEFFICIENT')};`,
    `class names at ${job('attempt/bounded-error', 'MAX_ERROR_NAME')} characters, the message at ${job('attempt/bounded-error', 'MAX_ERROR_MESSAGE')}.`,
    ...['ojs', 'zzz', 'chasqui', 'zizq', 'sidekiq'].map(
      (name) => `**\`${name}\`**: ${PRESETS[name].max_attempts} runs`,
    ),
  ],
  'docs/guides/schedules.md': [
    `Up to ${queue('features/cron/fire', 'MAX_WAITING')} fires wait`,
    `the last ${queue('features/cron/fire', 'KEPT_EXECUTIONS')} jobs with their outcomes, the last ${queue('features/cron/fire', 'KEPT_SKIPS')} skipped fires`,
  ],
  'docs/guides/steps.md': [
    `at most ${steps} names, ${stepBytes} of records, and ${mib(job('steps', 'MAX_ASIDE_BYTES'))} of results`,
    `above ${kib(job('steps', 'LARGE_RESULT'))}`,
  ],
  'docs/guides/workflows.md': [
    `A workflow can be read for ${days(own('workflow/engine', 'RETENTION_MS'))} days after its end`,
    `up to ${mib(own('workflow/engine', 'MAX_SHOWN_BYTES'))} in all`,
    `together exceed ${mib(own('workflow/engine', 'MAX_STORED_BODY'))}`,
    `Forms nest up to ${job('workflow/parse', 'MAX_DEPTH')} deep, with up to ${batch} jobs and ${mib(http('request/body', 'MAX_BATCH_BYTES'))} in all`,
  ],
  'docs/guides/limits.md': [
    `at most ${job('limits/policy', 'MAX_KEY_LENGTH')}; e.g.`,
    `attempts at once, 1 … ${job('limits/policy', 'MAX_CONCURRENCY')}.`,
    `in any period of that length, 1 … ${job('limits/policy', 'MAX_STARTS')};`,
    `${job('limits/overrides', 'MAX_OVERRIDES')} keys may have an override at a time`,
    `discards the rest, ${turnChanges / 2} jobs in a turn`,
    `remembers up to ${job('limits/starts', 'MAX_MOMENTS')} different moments`,
    `Default: ${own('settings', 'DEFAULT_WARNING')}.`,
  ],
  'docs/guides/schemas.md': [
    `${own('directory/life', 'MAX_SCHEMAS')} schemas and ${mib(own('directory/life', 'MAX_BYTES'))} in all`,
    `up to ${seconds(own('directory/life', 'DONE_WITHIN_MS'))} s`,
    `${kib(own('schemas/check', 'MAX_SCHEMA_BYTES'))} a schema, ${own('schemas/check', 'MAX_LEVELS')} levels`,
    `${own('schemas/check', 'MAX_UNFOLDED')} schemas with references`,
    `A \`pattern\` has up to ${own('schemas/pattern-states', 'MAX_PATTERN')} characters`,
    `up to ${own('schemas/pattern-states', 'MAX_STATES')} characters with its repetitions`,
    `a schema have up to ${own('schemas/check', 'MAX_STATES')}.`,
    `texts of up to ${own('schemas/validation', 'LONGEST_FORMAT')} characters; longer ones fail`,
    `${own('schemas/work', 'MAX_STEPS') / 1e6} million steps`,
  ],
  'docs/guides/bulk-and-queries.md': [
    `when ${own('across/job-list', 'MAX_VAIN')} jobs were read without a match`,
    `Beyond ${own('across/sorted-list', 'MAX_LOOKED')} the answer is 422`,
    `Pages go up to the ${own('across/sorted-list', 'MAX_DEPTH')}th job`,
    `It looks at ${own('across/counts', 'BEFORE_OPERATION')} jobs at most`,
    `up to ${http('request/filter/conditions', 'MAX_TYPES')} types, ${http('request/filter/conditions', 'MAX_TAGS')} tags and ${http('request/filter/conditions', 'MAX_FIELDS')} members of the payload`,
    `\`id\`: up to ${ids} ids.`,
    `At most ${job('search', 'MAX_WORDS')} words and ${job('search', 'MAX_SEARCH')} characters.`,
    `(up to ${queue('read/scan', 'MAX_INDEXED')} jobs); ids are looked up`,
    `at most ${queue('features/bulk/feature', 'MAX_LOOKED')} jobs of a queue are searched`,
    `transactions of at most ${turnChanges} jobs`,
    `If the operation takes longer than ${http('bulk/operate', 'MAX_WAIT_S')} seconds`,
    `\`items\` lists the first ${constant('rpc/operations.ts', 'MAX_ITEMS')}, queue by queue`,
    `come the first ${constant('rpc/operations.ts', 'MAX_ERRORS')} of the others`,
    `Send an \`Idempotency-Key\` (1 to ${http('request/idempotency', 'MAX_LENGTH')} characters)`,
  ],
  'docs/start/handlers.md': [
    `(JSON, at most ${mib(job('envelope/names', 'MAX_RESULT_BYTES'))} and ${job('envelope/nesting', 'MAX_DEPTH')} levels deep;`,
    `The last ${logLines} lines, at most ${logBytes}, are kept with the job`,
    `default ${seconds(TARGET_DEFAULTS.timeoutMs)} s, at most ${minutes(queue('features/push/target', 'MAX_TIMEOUT_MS'))} min`,
    `at most every ${seconds(queue('features/push/target', 'ASK_OUTDATED_MS'))} s`,
  ],
  'docs/start/workers.md': [
    `| \`concurrency\` | 10 | jobs at once, 1 to ${own('client/run', 'MAX_CONCURRENCY')}`,
    `| \`heartbeatMs\` | ${own('client/run', 'HEARTBEAT_MS')}, or ${own('client/run', 'SOCKET_HEARTBEAT_MS')} over a socket`,
    `else ${own('client/pull', 'LEASE_MS')} |`,
    `what they finish in ${own('client/running-jobs', 'AHEAD_MS')} ms, at most ${own('client/running-jobs', 'MAX_AHEAD')} jobs`,
    `A worker is \`stale\` after ${seconds(own('directory/workers', 'STALE_AFTER_MS'))} seconds without a heartbeat`,
    `pauses of at most ${seconds(own('client/runner', 'LONGEST_PAUSE_MS'))} seconds`,
    `else ${minutes(DEFAULTS.visibilityMs)} minutes. A job whose lease`,
    `\`count\` is clamped to 1 … ${http('workers/fetch', 'MAX_COUNT')}, and \`wait_ms\` (long poll) to 0 … ${http('workers/fetch', 'MAX_WAIT_MS')}.`,
    `\`POST /workers/report\` takes up to ${job('attempt/read-report', 'MAX_REPORTS')} acks and nacks`,
    `remembers that, up to ${queue('store/configuration', 'MAX_PULLED')} types`,
    `every ${seconds(queue('store/configuration', 'CHANGE_EVERY_MS'))} seconds at most`,
    `(at most ${http('results/routes', 'MAX_WAIT_SECONDS')} seconds)`,
    `It is any JSON up to ${mib(job('attempt/notes', 'MAX_CHECKPOINT_BYTES'))}.`,
  ],
  'docs/operate/access.md': [
    `The log keeps ${days(AUDIT_BOUNDS.ageMs)} days, ${AUDIT_BOUNDS.rows} entries and ${mib(AUDIT_BOUNDS.bytes)}.`,
    `The body of a login is at most ${kib(http('session/routes', 'MAX_LOGIN_BYTES'))}`,
    `at most ${http('middleware/audit', 'MAX_REASON')} characters, percent-encoded`,
    `${http('session/attempts', 'PER_ISOLATE')} failed logins of all addresses`,
  ],
  'docs/operate/dead-letters.md': [
    `for ${days(deadLetter.maxAge)} days after the discard, and at most ${deadLetter.maxCount} of them.`,
    `the newest ${queue('read/dead-letters', 'KINDS_BUDGET')} dead letters of a queue, and list the ${queue('read/dead-letters', 'MAX_KINDS')} most frequent`,
  ],
  'docs/operate/failures.md': [
    `Only the first ${job('failures/fingerprint', 'MAX_LOOKED_AT')} characters of a message are used.`,
    `no more than the ${constant('across/failures.ts', 'MAX_LOOKED')} newest failures`,
    `up to ${http('jobs/story', 'MAX_CHILDREN')} jobs that its handler enqueued, found among the newest ${http('jobs/story', 'CHILDREN_BUDGET')} jobs`,
  ],
  'docs/operate/live-events.md': [
    `share ${mib(own('durable/unread', 'MAX_IN_ALL'))}.`,
    `less than ${kib(own('durable/unread', 'LEAST_SHARE'))}`,
    `A queue has at most ${own('durable/followers', 'MAX_FOLLOWERS')} followers.`,
    `more than ${own('durable/allowance', 'EVENTS_PER_SECOND')} events within a second`,
    `counts with its size and ${own('durable/unread', 'AROUND')} bytes more`,
    `sends the comment \`:heartbeat\` every ${seconds(http('events/event-stream', 'HEARTBEAT_MS'))} s.`,
    `A socket follows at most ${http('events/socket', 'MAX_CHANNELS')} channels.`,
    `disconnects when ${kib(http('events/event-stream', 'MAX_BACKLOG'))} wait for the client`,
    `After each ${kib(http('events/socket', 'ASK_AFTER'))} it sends`,
    `When ${mib(http('events/socket', 'MAX_UNREAD'))} are unconfirmed, the server closes the socket`,
    `With more than ${queuesAtOnce} queues, you follow the ${queuesAtOnce} that change most`,
  ],
  'docs/operate/maintenance.md': [
    `up to ${http('maintenance/routes', 'MAX_REASON')} characters, shown`,
    `up to the ${own('across/held-uniques', 'MAX_DEPTH')}th entry`,
    `looks at some ${own('across/held-uniques', 'MAX_LOOKED')} jobs at most`,
  ],
  'docs/operate/metrics.md': [
    `any queue after ${minutes(own('directory/readings', 'MAX_AGE_MS'))} minutes`,
    `A queue counts ${queue('store/meters-table', 'MAX_TYPES')} types by name`,
    `hours for ${days(own('metrics/series', 'KEEP_HOURS_MS'))} days`,
    `with more than ${own('metrics/as-of', 'MAX_UPCOMING')} jobs that become available later`,
    `${kib(queue('store/meters-table', 'MAX_BYTES'))} of minutes and as much of hours`,
    `a text of at most ${queue('store/meters', 'MAX_TEXT')} characters`,
    `One request asks at most ${queuesAtOnce} queues.`,
    `at most ${queue('features/analytics/feature', 'MAX_POINTS')} at a time`,
  ],
  'docs/operate/queues.md': [
    `**From ${queue('store/storage', 'PRUNE_FROM') * 100} % of the bound on**`,
    `until ${queue('store/storage', 'PRUNE_TO') * 100} % is reached`,
    `**From ${queue('store/storage', 'REFUSE_FROM') * 100} % on**`,
    `number of pushed jobs that run at once, 1 … 10000. Default: ${DEFAULTS.concurrency}.`,
    `Default: ${days(retention.completed)} days.`,
    `Default: ${days(retention.discarded)} days. A duration`,
    `${STORAGE_BOUNDS.min} – ${STORAGE_BOUNDS.max}; see [Storage]`,
    `\`queues\`: up to ${own('pools/pool', 'MAX_QUEUES')}, as a list`,
    `gave none for ${seconds(http('pools/routes', 'STARVED_MS'))} s`,
  ],
  'docs/operate/webhooks.md': [
    `A deployment has at most ${own('directory/webhooks/list', 'MAX_WEBHOOKS')} subscriptions.`,
    `${own('directory/webhooks/deliveries', 'MAX_PENDING')} deliveries or 32 million characters may wait`,
    `the first ${own('dispatch/webhook', 'MAX_KEPT')} characters of an answer`,
    `Answer 2xx within ${seconds(own('dispatch/webhook', 'TIMEOUT_MS'))} s`,
    `any data of yours to store with it, ${own('notifications/webhook/parse', 'MAX_METADATA_BYTES') / 1024} KiB.`,
    `Each former secret signs for ${own('notifications/webhook/subscription', 'FORMER_SECRET_MS') / 3_600_000} hours after it was replaced`,
  ],
  'docs/operate/why-waiting.md': [
    `are counted up to ${queue('store/jobs-ahead', 'MAX_COUNTED')} rows`,
    `These calls therefore ask the queues: at most ${queuesAtOnce} in one request`,
  ],
  'docs/reference/http.md': [
    `at most ${mib(own('job/envelope/render', 'MAX_POLICY_CHARS'))} of \`retry_effective\``,
    `A name has 1 to 128 characters; a job may have ${steps} steps of ${stepBytes} in all`,
    `the newest ${logLines} lines of all attempts, at most ${logBytes}`,
    `A body has ten seconds to arrive, and a second more for each ${kib(http('request/body', 'BYTES_A_SECOND'))}`,
    `at most ${seconds(http('request/body', 'LONGEST_MS'))} seconds in all`,
    `A message repeats at most ${job('text', 'MAX_QUOTE')} characters`,
    `ends early, beyond ${mib(job('size', 'MAX_PAGE_BYTES'))}`,
    `weigh at most ${mib(job('size', 'MAX_CLAIM_BYTES'))}`,
    `an object, up to ${kib(metaBytes)}`,
    `One request asks at most ${queuesAtOnce} queues.`,
  ],
  'docs/reference/worker-socket.md': [
    `at most ${job('worker/socket', 'MAX_TYPES_CHARS')} characters. Default: any.`,
    `A worker may ask for ${job('worker/socket', 'MAX_READY')} at once.`,
    `after each ${kib(queue('features/pull/socket/worker-socket', 'ASK_AFTER'))}`,
    `more than ${mib(queue('features/pull/socket/worker-socket', 'MAX_UNREAD'))} unread`,
    `or ${mib(queue('features/pull/socket/worker-socket', 'MAX_WAITING'))} wait for it`,
    `answers no ping for ${seconds(queue('features/pull/socket/worker-socket', 'SILENT_MS'))} seconds`,
    `A message has at most ${mib(job('worker/socket', 'MAX_MESSAGE'))} of characters`,
    `after ${queue('features/pull/socket/sockets', 'MAX_FAULTS')} messages in a row`,
    `more than ${queue('features/pull/socket/sockets', 'MAX_UNDER_WAY')} are under way`,
  ],
  'docs/reference/between-objects.md': [
    `once they have read and written ${mib(own('durable/group-commit', 'MAX_WORK'))} of rows`,
    `No request asks more than ${queuesAtOnce} queues.`,
    `remembers a move for ${days(queue('features/transfer/moves', 'REMEMBER_MOVE_MS'))} days`,
  ],
  'docs/reference/life-of-a-job.md': [
    `up to ${kib(queue('store/block', 'MAX_CHARS'))}.`,
    `${mib(queue('store/block-cache', 'MAX_HEADS'))} of their heads and`,
    `${mib(queue('store/block-cache', 'MAX_BODIES'))} of bodies at most, regardless of the backlog`,
    `at most ${queue('store/singles', 'MAX_LIVE')}, of ${kib(queue('store/singles', 'MAX_CHARS'))} each`,
    `An event may start ${queue('features/push/pump', 'CALLS_PER_EVENT')} calls`,
    `${mib(queue('store/observations', 'MAX_BYTES'))} for all attempts together`,
  ],
  'docs/guides/unique.md': [
    `${own('locks/object', 'TURN_ROWS')} rows in a turn`,
    `waits longer than ${seconds(own('across/reservation', 'WAIT_MS'))} seconds for its turn`,
  ],
  'docs/guides/https-targets.md': [`at most ${own('dispatch/target-url', 'MAX_LENGTH')} characters, without user name`],
  'docs/operate/alerts.md': [`A deployment has at most ${own('directory/alerts', 'MAX_ALERTS')} rules.`],
  'docs/operate/operations.md': [
    `asks the directory once in ${seconds(own('across/statistics', 'PING_EVERY_MS'))} s`,
    `counts only the first ${own('directory/readings', 'LOOKED_AT')} queues, and is at most a minute old`,
    `at most ${mib(own('durable/event-log', 'KEPT_BYTES'))} of them`,
    `cut after ${own('durable/event-log', 'MAX_TEXT')} characters`,
    `left out beyond ${own('durable/event-log', 'MAX_OBJECT')}`,
    `reach the newest ${http('events/routes', 'MAX_BACK')} events`,
  ],
  'docs/reference/client.md': [
    `A client holds up to ${own('client/producer-sockets', 'MAX_SOCKETS')} sockets.`,
    `larger than ${kib(own('client/worker-channel', 'LONGEST_MESSAGE'))} or have`,
  ],
};

/** A text on one line, its numbers without separators. */
const plain = (text) => text.replace(/\s+/g, ' ').replace(/(?<=\d)[ ,](?=\d{3}(?!\d))/g, '');

describe('the numbers of', () => {
  for (const [page, sentences] of Object.entries(SAID)) {
    it(page, () => {
      const text = plain(read(page));
      assert.deepEqual(
        sentences.filter((sentence) => !text.includes(plain(sentence))),
        [],
        `${page} must say this`,
      );
    });
  }

  it('docs/operate/capacity.md, line by line', () => {
    const lines = read('docs/operate/capacity.md').split('\n');
    const formula = `days an ended job stays = ${whole(pruneBytes)} bytes / (jobs a second × bytes a job × 86,400)`;
    const table = [...[227, 1000, 10_000, 100_000].map(stored), ...[1, 10, 100, 1000].map(costs)];
    assert.deepEqual(
      [formula, ...table].filter((line) => !lines.includes(line)),
      [],
    );
  });
});
