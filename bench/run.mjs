/**
 * Measures speed, latency and cost on this machine, over loopback only.
 *
 *     npm run bench -- [--quick] [--only name,…] [--server workerd,wrangler] [--json FILE]
 *     npm run bench -- [--load] [--peers] [--quick] [--only name,…] [--json FILE]
 *     npm run bench -- --table [--quick] [--only name,…] [--json FILE]
 *     npm run bench -- --steady [--rate 800,3000,8000] [--minutes 1] [--only name,…] [--bad name,…] [--contract FILE]
 *
 * Names are those of the files in `scenarios/`. Each scenario gets a server of its own with empty storage. `--load` runs
 * those in `load/scenarios/` instead, `--peers` measures other queues beside this one. `--table` measures the tables of
 * docs/operate/performance.md, each line three times, beside the floor of the runtime and durable peers. `--steady` loads Tocsin
 * and the peers for as long as it is asked to, and shows what a user feels.
 */
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { runLoad } from './load/index.mjs';
import { FORMULA } from './price.mjs';
import { table } from './report.mjs';
import * as client from './scenarios/client.mjs';
import * as drain from './scenarios/drain.mjs';
import * as enqueue from './scenarios/enqueue.mjs';
import * as groups from './scenarios/groups.mjs';
import * as latency from './scenarios/latency.mjs';
import * as pulled from './scenarios/pulled.mjs';
import * as rows from './scenarios/rows.mjs';
import * as startup from './scenarios/startup.mjs';
import * as streams from './scenarios/streams.mjs';
import { KINDS, start } from './servers/index.mjs';
import { round } from './stats.mjs';
import { runSteady } from './steady/index.mjs';
import { runTable } from './table/index.mjs';

const SCENARIOS = { startup, enqueue, client, drain, pulled, latency, rows, groups, streams };

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    server: { type: 'string' },
    json: { type: 'string' },
    load: { type: 'boolean', default: false },
    peers: { type: 'boolean', default: false },
    table: { type: 'boolean', default: false },
    steady: { type: 'boolean', default: false },
    rate: { type: 'string' },
    minutes: { type: 'string' },
    bad: { type: 'string' },
    contract: { type: 'string' },
  },
});
const isLoad = options.load || options.peers;

const chosen = isLoad || options.table || options.steady ? [] : (options.only?.split(',') ?? Object.keys(SCENARIOS));
const unknown = chosen.find((name) => !Object.hasOwn(SCENARIOS, name));
if (unknown !== undefined) {
  console.error(`No scenario ${unknown}; there are ${Object.keys(SCENARIOS).join(', ')}.`);
  process.exit(2);
}
const kinds = options.server?.split(',');

const report = {
  machine: {
    cpus: cpus().length,
    model: cpus()[0]?.model.trim(),
    memory_gb: round(totalmem() / 2 ** 30),
    node: process.version,
    load_before: round(loadavg()[0], 2),
  },
  quick: options.quick,
  started_at: new Date().toISOString(),
  results: [],
};

const { machine } = report;
console.log(
  `${machine.cpus} × ${machine.model}, ${machine.memory_gb} GB, Node ${machine.node}, load ${machine.load_before}; loopback\n`,
);

let failed = isLoad && !(await runLoad(options, report));
if (options.table) failed = !(await runTable(options, report)) || failed;
if (options.steady) failed = !(await runSteady(options, report)) || failed;
for (const name of chosen) {
  const scenario = SCENARIOS[name];
  for (const kind of scenario.servers.filter((one) => !kinds || kinds.includes(one) || one === 'counting')) {
    const begun = performance.now();
    let server;
    try {
      server = await start(kind);
      const result = await scenario.run(server, { quick: options.quick });
      report.results.push({ scenario: name, server: kind, rows: result });
      console.log(table(`${scenario.title}: ${KINDS[kind].name}`, scenario.columns, result));
    } catch (error) {
      failed = true;
      report.results.push({ scenario: name, server: kind, error: String(error) });
      console.error(
        `${scenario.title} on ${KINDS[kind].name} failed: ${error.stack ?? error}\n${server?.output() ?? ''}\n`,
      );
    } finally {
      await server?.close();
    }
    report.results.at(-1).seconds = round((performance.now() - begun) / 1000, 1);
  }
}

if (chosen.includes('rows')) {
  console.log(`Price: ${FORMULA}.\n`);
}
report.seconds ??= round(
  report.results.reduce((sum, { seconds }) => sum + seconds, 0),
  1,
);
console.log(`Took ${report.seconds} s.`);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
process.exit(failed ? 1 : 0);
