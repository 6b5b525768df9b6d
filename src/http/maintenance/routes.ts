/** Maintenance: no queue hands out jobs and no schedule fires until it ends; enqueued jobs wait. */

import * as contract from '../../contract/maintenance';
import { defined, given, type Reader, readBoolean, readDuration, readText } from '../../job/envelope/fields';
import { readMembers } from '../../job/envelope/members';
import { invalidRequest } from '../../job/errors';
import type { Maintenance, MaintenanceNotice } from '../../job/maintenance';
import { formatInstant } from '../../job/time';
import { also, nameGiven } from '../../ojs/names';
import { directoryObject } from '../../rpc/stubs';
import { type AppContext, json } from '../context';
import { pendingQueues } from '../queues/render';
import { type JsonObject, readBody } from '../request/body';
import { serve } from '../route';

const MAX_REASON = 1_000;

export const adminMaintenanceRoutes = serve(contract.maintenance, {
  show,
  change,
  showHere: show,
  changeHere: change,
});

async function show(c: AppContext) {
  return json(c, render(await directoryObject(c.env).maintenance()));
}

async function change(c: AppContext) {
  const { maintenance, untold } = await directoryObject(c.env).declareMaintenance(
    readNotice(await readBody(c), Date.now()),
  );
  return json(c, { ...render(maintenance), ...pendingQueues(untold) });
}

const readReason = readText(
  (text) => text.length <= MAX_REASON && !text.includes('\0'),
  `must be a string of at most ${MAX_REASON} characters without U+0000`,
);

const readLength: Reader<number> = (value, field) => {
  const ms = readDuration(value, field);
  if (ms > 0) return ms;
  throw invalidRequest(field, `${field} must be longer than zero; omit it for no end.`);
};

const readNoticeMembers = readMembers(
  also('MaintenanceNotice', { enabled: readBoolean, duration: readLength, reason: readReason }),
);

/** @returns null: it ends @throws {ApiError} 400 */
function readNotice(body: JsonObject, now: number): MaintenanceNotice | null {
  const notice = readNoticeMembers(body, '');
  const { enabled, reason } = notice;
  const duration = notice[nameGiven('MaintenanceNotice', 'duration', notice)];
  if (enabled === undefined) throw invalidRequest('enabled', 'enabled is required: true or false.');
  return enabled ? defined({ reason, ends_at: given(duration, (ms) => now + ms) }) : null;
}

function render(maintenance: Maintenance | null): contract.MaintenanceState {
  const { reason = null, started_at, ends_at } = maintenance ?? {};
  return also('MaintenanceState', {
    enabled: maintenance !== null,
    reason,
    started_at: given(started_at, formatInstant) ?? null,
    ends_at: given(ends_at, formatInstant) ?? null,
  });
}
