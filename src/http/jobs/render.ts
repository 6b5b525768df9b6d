import { fullestOf, type Warned, warningTexts } from '../../across/receipts';
import { usableConfig } from '../../config';
import type { JobAnswer } from '../../contract/jobs';
import { PolicyRoom, renderJob } from '../../job/envelope/render';
import type { JobView } from '../../job/record';
import type { UnknownMembers } from '../../job/unknown-members';
import type { JobEnvelope } from '../../job/wire';
import { withFlatCopy } from '../../ojs/answers';
import type { EnqueuedJob } from '../../rpc/receipts';
import { type Answer, type AppContext, json } from '../context';

/** The envelope of a job. @param room see `renderJob` */
export const envelopeOf = (c: AppContext, view: JobView, room?: PolicyRoom): JobEnvelope =>
  renderJob(view, usableConfig(c.env).retryVariables, undefined, room);

export function envelopesOf(c: AppContext, views: readonly JobView[]): JobEnvelope[] {
  const room = new PolicyRoom();
  return views.map((view) => envelopeOf(c, view, room));
}

/** Answers a job under `job`, and flat for clients that look there. @param own the answer's other members */
export const answerJob = <Own extends object>(c: AppContext, view: JobView, own?: Own): Answer<JobAnswer & Own> =>
  json(c, withFlatCopy(envelopeOf(c, view), own));

/** The headers of an answer to an enqueue; none without limits. */
export function limitHeaders(c: AppContext, jobs: readonly EnqueuedJob[]): Record<string, string> {
  // What is left of a queue or of a limit is a number of others.
  if (c.get('caller')?.bounds) return {};
  const standing = jobs[0]?.standing;
  return {
    ...pressureHeaders(jobs),
    ...(standing && {
      'X-RateLimit-Limit': String(standing.limit),
      'X-RateLimit-Remaining': String(standing.remaining),
      'X-RateLimit-Reset': String(Math.ceil(standing.resets_at / 1000)),
    }),
  };
}

/** Warnings for producers, once each: members of the body, and headers (RFC 7234, 5.5). Empty if all is well. */
export function warningsOf(
  about: readonly Warned[],
  unknown?: UnknownMembers,
): {
  members: { warnings?: string[] };
  headers: Record<string, string>;
} {
  const warnings = warningTexts(about, unknown);
  if (warnings.length === 0) return { members: {}, headers: {} };
  return {
    members: { warnings },
    headers: { Warning: warnings.map((text) => `299 - ${quotedString(text)}`).join(', ') },
  };
}

/** A text in a header: what is not printable ASCII shows as a question mark. */
const quotedString = (text: string): string => `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;

/** The fullest of the nearly full queues. */
function pressureHeaders(jobs: readonly EnqueuedJob[]): Record<string, string> {
  const fullest = fullestOf(jobs);
  if (!fullest) return {};
  return {
    'X-OJS-Queue-Depth': String(fullest.depth),
    'X-OJS-Queue-Bound': String(fullest.bound),
    'X-OJS-Queue-Pressure': String(Math.min(1, Math.round((100 * fullest.depth) / fullest.bound) / 100)),
  };
}
