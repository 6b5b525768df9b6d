/** The filter of the audit page offers whatever is recorded, and nothing that never is. */
import { describe, expect, it } from 'vitest';
import { ROUTES } from '../../../src/http/routes';
import { KINDS } from '../../../src/ui/pages/audit/kinds';

const actions = [...new Set(ROUTES.flatMap(({ audit }) => (audit === undefined || audit === 'none' ? [] : [audit])))];

/** As the server reads a pattern: a beginning. */
const matches = (action: string, pattern: string) => action.startsWith(pattern.replace('*', ''));

describe('the kinds of the audit page', () => {
  it.each(actions)('include %s', (action) => {
    expect(KINDS.filter(([pattern]) => matches(action, pattern))).not.toEqual([]);
  });

  it.each(KINDS)('%s has actions', (pattern) => {
    expect(actions.filter((action) => matches(action, pattern))).not.toEqual([]);
  });
});
