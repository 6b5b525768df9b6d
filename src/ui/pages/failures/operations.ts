import type { StartedOperation } from '../../components/operation';
import { segment } from '../../core/base';
import { query } from '../../core/router';
import { atPath } from '../jobs/operations';

/** What narrows the groups that are listed narrows what is done to one of them; the age does not. */
export function narrowed(): Record<string, unknown> {
  const names = ['queue', 'type', 'state'].filter((name) => query(name) !== '');
  return Object.fromEntries(names.map((name) => [name, query(name).split(',')]));
}

const WORDS = {
  redrive: {
    ...{ verb: 'Redrive', doing: 'Redriving', done: 'redriven' },
    text: 'They run again as soon as there is capacity, including those that wait for their next attempt.',
  },
  discard: {
    ...{ verb: 'Discard', doing: 'Discarding', done: 'deleted permanently', danger: true },
    text: 'They are deleted with their history, including those that wait for their next attempt. This cannot be undone.',
  },
};

export function onGroup(fingerprint: string, action: 'redrive' | 'discard'): StartedOperation {
  return { ...WORDS[action], ...atPath(`admin/failures/${segment(fingerprint)}/${action}`, narrowed()) };
}
