/** What the table says of the figures that were measured. */
import { median, round } from '../stats.mjs';
import { measureOf } from './lines.mjs';

/** The median of what a line's measure gave in each round; undefined where it gave none. */
export function figureOf(line, system, samples) {
  const measured = samples[system]?.[measureOf(line, system)] ?? [];
  const values = measured.map((value) => (line.part === undefined ? value : value[line.part]));
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : median(known);
}

/** How many times better than the best peer: above 1 is ahead, whether more or less is better. */
export function ratio(better, ours, peers) {
  const known = peers.filter((value) => value !== undefined);
  if (ours === undefined || known.length === 0) return undefined;
  return better === 'more' ? ours / Math.max(...known) : Math.min(...known) / ours;
}

/** Short enough for a table: whole numbers from 100 on, else two digits. */
export function shown(value) {
  if (value === undefined) return '–';
  if (value >= 100) return round(value).toLocaleString('en-US');
  return String(round(value, value >= 10 ? 1 : 2));
}

/** A line of the table, as its cells. */
export function cells(line, systems, samples) {
  const figures = Object.fromEntries(systems.map((system) => [system, figureOf(line, system, samples)]));
  const { tocsin, floor, ...peers } = figures;
  const toFloor = ratio(line.better, tocsin, [floor]);
  const share = toFloor === undefined ? '–' : `${round(toFloor * 100)} %`;
  const times = ratio(line.better, tocsin, Object.values(peers));
  return { figures, share, times };
}
