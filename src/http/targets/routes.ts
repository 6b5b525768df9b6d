/** Targets: the handler Workers that jobs are pushed to, as the queues see them; and retrying a stopped one now. */
import { encodeCursor, readAfter } from '../../across/paging';
import {
  type GatheredTargets,
  gatherTargets,
  type KnownTarget,
  resumeTarget,
  type TargetInQueue,
} from '../../across/targets';
import * as contract from '../../contract/targets';
import { defined, given } from '../../job/envelope/fields';
import { formatInstant, withWrittenTimes } from '../../job/time';
import { also } from '../../ojs/names';
import type { TargetView } from '../../rpc/targets';
import { type AppContext, json } from '../context';
import { readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { queueParam } from '../request/query';
import { serve } from '../route';

/** Worse states count for more: a target is shown in the worst state that any queue sees it in. */
const STATES: readonly TargetView['state'][] = ['up', 'paused', 'stopped'];

const MAX_TYPES = 1_000;

export const targetRoutes = serve(contract.targets, { list, show, resume });

async function list(c: AppContext) {
  const gathered = await gatherTargets(c.env, asked(c));
  const items = gathered.targets.map(renderTarget);
  return json(c, also('TargetList', { items, total: items.length, ...askedMembers(gathered) }));
}

async function show(c: AppContext) {
  const gathered = await gatherTargets(c.env, { ...asked(c), name: pathParam(c, 'name') });
  const [target] = gathered.targets as [KnownTarget];
  const queues = target.queues.map(renderInQueue);
  return json(c, { ...renderTarget(target), queues, ...askedMembers(gathered) });
}

async function resume(c: AppContext) {
  const name = pathParam(c, 'name');
  const { asked, tried } = await resumeTarget(c.env, name, queueParam(c, 'queues', 'queue'));
  const resumed = tried.filter(({ state }) => state === 'up').length;
  const counts = { queues_asked: asked, tried: tried.length, resumed };
  return json(c, { name, ...counts, queues: tried.map(renderInQueue) });
}

const asked = (c: AppContext) => ({ named: queueParam(c, 'queues', 'queue'), after: readAfter(readPaging(c)) });

/** Which queues this is about, and how to continue with the next ones. */
const askedMembers = ({ asked, unreachable, after }: GatheredTargets): contract.Asked => ({
  queues_asked: asked,
  ...(unreachable.length > 0 && { unreachable }),
  next_cursor: after === undefined ? null : encodeCursor({ after }),
});

/** A target over all queues that were asked: in the worst state, with the latest trouble. */
function renderTarget({ name, configs, queues }: KnownTarget): contract.TargetStatus {
  const count = (state: TargetView['state']) => queues.filter((view) => view.state === state).length;
  const worst = STATES.findLast((state) => count(state) > 0) ?? 'up';
  const [latest] = queues
    .filter(({ state }) => state === worst && worst !== 'up')
    .sort((a, b) => (b.last_tried_at ?? 0) - (a.last_tried_at ?? 0));
  const types = new Set(queues.flatMap((view) => view.types ?? []));
  return {
    name,
    patterns: configs.flatMap(({ patterns }) =>
      patterns.map(({ queue, type }) => (queue === undefined ? type : `${queue}/${type}`)),
    ),
    state: worst,
    ...(latest && troubleOf(latest)),
    ...(types.size > 0 && { types: [...types].sort().slice(0, MAX_TYPES) }),
    queue_states: { up: count('up'), paused: count('paused'), stopped: count('stopped') },
  };
}

const renderInQueue = ({ queue, state, asked_at, types, ...view }: TargetInQueue): contract.TargetInQueue => ({
  queue,
  state,
  ...troubleOf(view),
  ...defined({ asked_at: given(asked_at, formatInstant), types }),
});

const troubleOf = ({ since, last_tried_at, last_error, next_try_at }: Omit<TargetView, 'state'>): contract.Trouble =>
  defined(withWrittenTimes({ since: given(since, formatInstant), last_tried_at, last_error, next_try_at }));
