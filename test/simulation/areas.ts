/** All areas of the simulation: adding one is a file, a line here, and one in `steps.ts`. */
import type { Extras, Kind, Player } from './area';
import { area as batches } from './batches';
import { area as chunks } from './chunks';
import { area as crons } from './crons';
import { area as files } from './files';
import { area as groups } from './groups';
import { area as jobs } from './jobs';
import { area as mixes } from './mixes';
import { area as moves } from './moves';
import { area as pulls } from './pulls';
import { area as pushes } from './pushes';
import { area as reports } from './reports';
import { area as settings } from './settings';
import { area as shares } from './shares';
import type { Step } from './steps';
import { together } from './together';
import { area as trees } from './trees';
import { area as trouble } from './trouble';
import { area as weeks } from './weeks';
import { area as workflows } from './workflows';

const AREAS = [
  ...[jobs, reports, crons, trouble, weeks, pushes, shares, moves, workflows],
  ...[batches, settings, pulls, together((step) => kindOf(step)), mixes, groups, files, chunks, trees],
];

/** What areas do beside playing their steps. */
export const EXTRAS: readonly Extras<Step>[] = AREAS;

const KINDS = Object.assign({}, ...AREAS.map(({ kinds }) => kinds)) as Record<Step['op'], Player<Step>>;

/** How a step is played. */
export function kindOf(step: Step): Kind<Step> {
  const kind = KINDS[step.op];
  if (typeof kind !== 'function') return kind;
  return { prepare: (scene, of) => ({ play: () => kind(scene, of) }) };
}
