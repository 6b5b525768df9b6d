/** Where a job is pushed: to the URL that it names, else to the target that its type is mapped to. */
import { type TargetConfig, targetFor } from '../../../dispatch/config';
import { mayNameUrl } from '../../store/columns';
import type { JobRow } from '../../store/job-row';
import { bodyOf } from '../../store/row-texts';

export const urlOf = (row: JobRow): string | undefined => (mayNameUrl(row.body) ? bodyOf(row).target_url : undefined);

/** The target of a job; undefined without one. A job with a URL has no other, even where that is no longer allowed. */
export const targetOf = (targets: readonly TargetConfig[], queue: string, row: JobRow): TargetConfig | undefined =>
  targetFor(targets, queue, row.type, urlOf(row));
