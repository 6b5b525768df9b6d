/**
 * `npm run bench -- --load` and `--peers`: Tocsin under load, and beside other queues on the same machine in the same run.
 * Everything listens on loopback only and is ended with the run.
 */
import { table } from '../report.mjs';
import { round } from '../stats.mjs';
import { compare, MEASURES } from './compare.mjs';
import * as backlog from './scenarios/backlog.mjs';
import * as depth from './scenarios/depth.mjs';
import * as due from './scenarios/due.mjs';
import * as failing from './scenarios/failing.mjs';
import * as payload from './scenarios/payload.mjs';
import * as poison from './scenarios/poison.mjs';
import * as producers from './scenarios/producers.mjs';
import * as pullers from './scenarios/pullers.mjs';
import { startWorkerd } from './workerd.mjs';
import { startWrangler } from './wrangler.mjs';

const SCENARIOS = { producers, due, failing, payload, pullers, poison, backlog, depth };

const OURS = {
  workerd: { name: 'Tocsin, raw workerd', start: () => startWorkerd() },
  wrangler: { name: 'Tocsin, wrangler dev', start: () => startWrangler() },
};

/**
 * Runs the requested parts, prints the results and adds them to `report`. Resolves to whether all went well.
 * @param options.load run the load scenarios
 * @param options.peers measure the peers too
 * @param options.only names of load scenarios, or `compare`
 */
export async function runLoad({ load, peers, quick, only }, report) {
  const begun = performance.now();
  const chosen = only?.split(',');
  const wanted = (name) => chosen === undefined || chosen.includes(name);
  const unknown = chosen?.find((name) => name !== 'compare' && !Object.hasOwn(SCENARIOS, name));
  if (unknown !== undefined) throw new Error(`No scenario ${unknown}; there are compare, ${Object.keys(SCENARIOS)}.`);
  let ok = true;
  if (wanted('compare')) ok = await comparison({ peers, quick }, report);
  for (const [name, scenario] of Object.entries(load ? SCENARIOS : {})) {
    if (wanted(name)) ok = (await underLoad(name, scenario, quick, report)) && ok;
  }
  report.seconds = round((performance.now() - begun) / 1000, 1);
  return ok;
}

async function comparison({ peers, quick }, report) {
  const systems = [];
  let ok = true;
  const take = async (system, measure) => {
    const begun = performance.now();
    try {
      const { name = system, ...result } = await measure();
      systems.push({ system: name, ...result });
    } catch (error) {
      ok = false;
      systems.push({ system, error: String(error) });
      console.error(`${system} failed: ${error.stack ?? error}\n`);
    }
    systems.at(-1).seconds = round((performance.now() - begun) / 1000, 1);
  };
  for (const { name, start } of Object.values(OURS)) {
    await take(name, async () => {
      const server = await start();
      try {
        return await compare(server, { quick });
      } finally {
        await server.close();
      }
    });
  }
  if (peers) {
    const { PEERS } = await import('../peers/index.mjs');
    for (const { name, measure } of PEERS) await take(name, () => measure({ quick }));
  }
  const named = systems.filter(({ error, skipped }) => !error && !skipped);
  const rows = Object.entries(MEASURES).map(([key, measure]) => ({
    measure,
    ...Object.fromEntries(named.map((one) => [one.system, one[key]])),
  }));
  console.log(table('Side by side', ['measure', ...named.map(({ system }) => system)], rows));
  for (const { system, skipped, notes = [] } of systems) {
    if (skipped) console.log(`${system}: skipped, ${skipped}`);
    for (const note of notes) console.log(`${system}: ${note}`);
  }
  console.log('');
  report.comparison = { measures: MEASURES, systems };
  return ok;
}

async function underLoad(name, scenario, quick, report) {
  const begun = performance.now();
  report.load ??= [];
  let server;
  let result;
  try {
    server = await (scenario.start ?? startWorkerd)();
    result = { rows: await scenario.run(server, { quick }) };
    console.log(table(`${scenario.title} (raw workerd)`, scenario.columns, result.rows));
    result.error = scenario.verdict?.(result.rows);
    if (result.error !== undefined) console.error(`${scenario.title}: ${result.error}\n`);
  } catch (error) {
    result = { error: String(error) };
    console.error(`${scenario.title} failed: ${error.stack ?? error}\n${server?.output() ?? ''}\n`);
  } finally {
    await server?.close();
  }
  report.load.push({ scenario: name, ...result, seconds: round((performance.now() - begun) / 1000, 1) });
  return result.error === undefined;
}
