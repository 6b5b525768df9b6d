import { table } from '../output';
import type { Moved, Remark, Tally } from './tally';

/** The report. @param isDry nothing was sent */
export function reportText(tally: Tally, isDry: boolean): string {
  const { jobs, schedules, places, remarks, leftBehind, refused, failures } = tally;
  const rows = places.map((place) => [
    ...[place.fromQueue, place.name, place.queue, place.type],
    ...[place.jobs, place.schedules],
  ]);
  const more = failures - refused.length;
  const parts = [
    rows.length > 0 ? table(['THEIR QUEUE', 'NAME', 'QUEUE', 'TYPE', 'JOBS', 'SCHEDULES'], rows) : '',
    [countText('jobs', jobs, isDry), countText('schedules', schedules, isDry)].join('\n'),
    section('Not quite the same here:', remarks.map(remarkText)),
    section('Not moved:', leftBehind.map(remarkText)),
    section('Refused:', [
      ...refused.map(({ kind, queue, id, name, message }) => `  ${kind} ${id} of ${queue} (${name}): ${message}`),
      ...(more > 0 ? [`  and ${more} more`] : []),
    ]),
    isDry ? 'This was a dry run: nothing was sent.' : '',
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function countText(what: string, outcome: Moved, isDry: boolean): string {
  const { found, moved, there, superseded, refused } = outcome;
  const counts = [
    `${moved} ${isDry ? 'to move' : 'moved'}`,
    ...(there > 0 ? [`${there} moved before`] : []),
    ...(superseded > 0 ? [`${superseded} not needed: another job has their unique key`] : []),
    ...(refused > 0 ? [`${refused} refused`] : []),
  ];
  return `${what}: ${[`${found} found`, ...counts].join(', ')}`;
}

const section = (title: string, lines: readonly string[]): string =>
  lines.length > 0 ? [title, ...lines].join('\n') : '';

const remarkText = ({ what, count, todo }: Remark): string => `  ${what}: ${count}. ${todo}`;
