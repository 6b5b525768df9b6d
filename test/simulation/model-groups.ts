/** Groups, as the documents have them: how a queue serves them, and who waits for whom. */
import type { Model, ModelJob } from './model';

export interface GroupTerms {
  order: 'fair' | 'strict';
  concurrency?: number | undefined;
}

interface GroupBook {
  /** Absent: jobs are handed out as if they had no group. */
  terms?: GroupTerms | undefined;
}

export function groupsOf(model: Model): GroupBook {
  return model.part<GroupBook>('groups', () => ({}));
}

export const isStrict = (model: Model): boolean => groupsOf(model).terms?.order === 'strict';

/** The group of a job: the one that it names, else the key of its limits. */
export const groupOf = ({ order }: ModelJob): string | undefined => order.group ?? order.limit ?? undefined;

/** Attempts of the group that run. */
export function runningOf(model: Model, group: string): number {
  return model.jobs.filter((job) => job.state === 'active' && groupOf(job) === group).length;
}

/**
 * The jobs of which a claim may take one for each group, the others of the group waiting for its end: those that hold it up, else
 * those that became available first. Several are alike.
 * @param available jobs of any kind
 */
export function headsOf(model: Model, available: readonly ModelJob[]): Map<string, ModelJob[]> {
  const heads = new Map<string, ModelJob[]>();
  for (const group of new Set(available.flatMap((job) => groupOf(job) ?? []))) {
    if (runningOf(model, group) > 0) continue;
    const waits = model.jobs.filter((job) => groupOf(job) === group && job.holds && job.state === 'waiting');
    const ready = available.filter((job) => groupOf(job) === group);
    const first = Math.min(...ready.map(({ availableAt }) => availableAt));
    const alike = ready.filter((job) => (waits.length > 0 ? waits.includes(job) : job.availableAt === first));
    if (alike.length > 0) heads.set(group, alike);
  }
  return heads;
}
