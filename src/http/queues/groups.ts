/** One group of a queue: how it gets on, and what operators say of it. */
import * as contract from '../../contract/queue-groups';
import type { GroupOverride as GroupOverrideAnswer } from '../../contract/queue-settings';
import { defined, given, readPathName } from '../../job/envelope/fields';
import { renderWaiting } from '../../job/envelope/render';
import { unwrap } from '../../job/errors';
import { type GroupChange, type GroupOverride, MAX_GROUP_LENGTH, readGroupChange } from '../../job/group';
import { formatInstant } from '../../job/time';
import type { GroupDetail, GroupView } from '../../rpc/groups';
import { queueObject } from '../../rpc/stubs';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { mustExist } from '../request/new-queues';
import { pathParam, queueNameIn } from '../request/path';
import { serve } from '../route';
import { renderGroupLimits } from './config';

export const queueGroupRoutes = serve(contract.queueGroups, {
  show,
  change: async (c) => override(c, readGroupChange(await readBody(c))),
  restore,
  pause: (c) => override(c, { paused: true }),
  resume: (c) => override(c, { paused: null }),
});

const groupIn = (c: AppContext): string => readPathName(MAX_GROUP_LENGTH)(pathParam(c, 'group'), 'group');

async function show(c: AppContext) {
  const [queue, group] = [queueNameIn(c), groupIn(c)];
  return json(c, renderDetail(queue, unwrap(await queueObject(c.env, queue).group(group))));
}

async function restore(c: AppContext) {
  const [queue, group] = [queueNameIn(c), groupIn(c)];
  return answer(c, queue, group, unwrap(await queueObject(c.env, queue).restoreGroup(group)));
}

async function override(c: AppContext, said: GroupChange) {
  const [queue, group] = [queueNameIn(c), groupIn(c)];
  await mustExist(c, queue);
  return answer(c, queue, group, unwrap(await queueObject(c.env, queue).overrideGroup(group, said)));
}

function answer(c: AppContext, queue: string, group: string, { unchanged, ...detail }: GroupDetail) {
  if (unchanged) c.set('unchanged', true);
  c.set('named', group);
  return json(c, renderDetail(queue, detail));
}

export const renderGroup = ({ oldest, blocked_by, waiting_for, ...group }: GroupView): contract.QueueGroup => ({
  ...{ ...group, blocked_by: blocked_by ?? null, oldest_waiting_at: given(oldest, formatInstant) ?? null },
  waiting_for: given(waiting_for, renderWaiting) ?? null,
});

/** What operators say of a group, as a change of it takes it. */
export const renderGroupOverride = ({ weight, paused, ...own }: GroupOverride): GroupOverrideAnswer => ({
  ...renderGroupLimits(own),
  ...defined({ weight, paused }),
});

function renderDetail(queue: string, detail: GroupDetail): contract.QueueGroupDetail {
  const { limits, override, complete, ...group } = detail;
  return {
    ...{ queue, ...renderGroup(group), limits: renderGroupLimits(limits) },
    override: given(override, renderGroupOverride) ?? null,
    ...(!complete && { counts_are_exact: false as const }),
  };
}
