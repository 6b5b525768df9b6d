/** All pages, in the order of the tabs. Their keys are those of the dashboard. */
import type { Page, PageId } from '../page';
import { events } from './events';
import { failures } from './failures';
import { job } from './job';
import { jobs } from './jobs';
import { audit, limits, schedules, webhooks, workflows } from './lists';
import { overview } from './overview';
import { queue } from './queue';
import { queues } from './queues';
import { settings } from './settings';
import { workers } from './workers';
import { workflow } from './workflow';

export const PAGES: readonly Page<unknown>[] = [
  ...[overview, queues, queue, jobs, job, failures, schedules, workflows, workflow],
  ...[workers, limits, events, webhooks, audit, settings],
];

export function pageOf(id: PageId): Page<unknown> {
  return PAGES.find((page) => page.id === id) ?? overview;
}
