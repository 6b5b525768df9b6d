/**
 * `npm run bench -- --table`: Tocsin, the floor of the runtime and durable peers, line by line. Each line is measured three
 * times. Within a time the systems take turns line by line, each time in another order, so that what slows the machine
 * down for a while slows all of them. Prints Markdown.
 */
import { loadavg } from 'node:os';
import { installPeers } from '../peers/packages.mjs';
import { block, item } from '../report.mjs';
import { round } from '../stats.mjs';
import { cells, shown } from './figures.mjs';
import { garbage } from './garbage.mjs';
import { GROUPS, LINES, plan, SYSTEMS } from './lines.mjs';
import { memory } from './memory.mjs';
import { prices } from './prices.mjs';
import { scaling } from './scaling.mjs';
import { openSystem } from './system.mjs';

const TIMES = 3;
const OURS = ['tocsin', 'floor'];

/** What is measured besides, of Tocsin alone. */
const PARTS = { prices, scaling, garbage, memory };

/**
 * Runs the chosen parts, prints them and adds them to `report`. Resolves to whether all went well.
 * @param options.only groups of lines, and names of parts, with commas between them; absent: all
 */
export async function runTable({ quick, only: names }, report) {
  const begun = performance.now();
  const only = names?.split(',');
  const known = [...Object.keys(GROUPS), ...Object.keys(PARTS)];
  const unknown = only?.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`No line ${unknown}; there are ${known.join(', ')}.`);
  let ok = await compareAll({ quick, only }, report);
  for (const [name, part] of Object.entries(PARTS)) {
    if (!(only?.includes(name) ?? true)) continue;
    try {
      report[name] = await part({ quick });
    } catch (error) {
      ok = false;
      report[name] = { error: String(error) };
      console.error(`${name} failed: ${error.stack ?? error}\n`);
    }
  }
  report.seconds = round((performance.now() - begun) / 1000, 1);
  return ok;
}

/**
 * Measures and prints the chosen lines, and adds them to `report`. Resolves to whether all went well.
 * @param options.only groups of lines; absent: all
 */
async function compareAll({ quick, only }, report) {
  const lines = LINES.filter(({ group }) => only?.includes(group) ?? true);
  if (lines.length === 0) return true;
  const wantsPeers = lines.some(({ peers }) => peers !== undefined);
  const packages = wantsPeers ? installPeers() : {};
  const systems = {};
  const notes = [];
  let ok = true;
  try {
    for (const name of Object.keys(SYSTEMS)) {
      const isPeer = !OURS.includes(name);
      if (isPeer && !wantsPeers) continue;
      const system = await opened(name, { quick, packages: packages.directory, problem: isPeer && packages.problem });
      ok &&= system.error === undefined;
      if (system.skipped) notes.push(`${SYSTEMS[name]} was left out: ${system.skipped}`);
      else systems[name] = system;
      notes.push(...(system.notes ?? []));
    }
    const { samples, loads, errors } = await measureAll(lines, systems);
    ok &&= errors.length === 0;
    print(lines, Object.keys(systems), samples, loads, notes);
    report.table = { lines: reported(lines, Object.keys(systems), samples), samples, loads, notes, errors };
  } finally {
    await Promise.all(Object.values(systems).map(({ close }) => close()));
    packages.remove?.();
  }
  return ok;
}

/** A system, or why there is none. One that fails must not end the others. */
async function opened(name, { quick, packages, problem }) {
  if (problem) return { skipped: problem };
  try {
    return await openSystem(name, { quick, packages });
  } catch (error) {
    console.error(`${SYSTEMS[name]} did not start: ${error.message}\n`);
    return { skipped: 'it did not start.', error: error.message };
  }
}

async function measureAll(lines, systems) {
  const names = Object.keys(systems);
  const samples = Object.fromEntries(names.map((name) => [name, {}]));
  const errors = [];
  const loads = [round(loadavg()[0], 1)];
  for (let time = 1; time <= TIMES; time++) {
    const begun = performance.now();
    // Another system goes first each time.
    const order = names.map((_, n) => names[(n + time - 1) % names.length]);
    for (const { system, measure } of plan(lines, order)) {
      if (!systems[system].has(measure)) continue;
      try {
        samples[system][measure] ??= [];
        samples[system][measure].push(await systems[system].measure(measure, time));
      } catch (error) {
        errors.push({ system, measure, time, error: error.message });
        console.error(`${SYSTEMS[system]}, ${measure}, time ${time}: ${error.message}\n`);
      }
    }
    loads.push(round(loadavg()[0], 1));
    console.error(`Time ${time} of ${TIMES} took ${round((performance.now() - begun) / 1000)} s.`);
  }
  return { samples, loads, errors };
}

function print(lines, systems, samples, loads, notes) {
  const peers = systems.filter((name) => !OURS.includes(name));
  const columns = ['', 'Tocsin', 'floor', 'of floor', ...peers.map((name) => SYSTEMS[name]), 'to best'];
  const rows = Object.entries(GROUPS).flatMap(([group, heading]) => {
    const chosen = lines.filter((line) => line.group === group);
    return chosen.length === 0 ? [] : [[heading], ...chosen.map((line) => row(line, systems, peers, samples))];
  });
  console.log(block('Beside other queues', columns, rows));
  const load = `Load average before, and after each of the ${TIMES} times: ${loads.join(', ')}.`;
  console.log(`${[...notes, ...clockNote(samples), load].map(item).join('\n')}\n`);
}

/** How well the clocks of handlers were known, where a line depends on it. */
function clockNote(samples) {
  const errors = Object.values(samples).flatMap(({ 'start-pushed': starts = [] }) =>
    starts.map((one) => one.clockError),
  );
  if (errors.length === 0) return [];
  return [`The clock that pushed handlers read was known to within ${round(Math.max(...errors), 2)} ms each time.`];
}

function row(line, systems, peers, samples) {
  const { figures, share, times } = cells(line, systems, samples);
  const others = peers.map((name) => shown(figures[name]));
  return [
    line.title,
    ...[shown(figures.tocsin), shown(figures.floor), share],
    ...[...others, times === undefined ? '–' : `${shown(times)} ×`],
  ];
}

/** The medians, for `--json`. */
function reported(lines, systems, samples) {
  return lines.map((line) => {
    const { figures, share, times } = cells(line, systems, samples);
    return {
      group: line.group,
      title: line.title,
      better: line.better,
      ...figures,
      of_floor: share,
      to_best_peer: times,
    };
  });
}
