/** The JSON lines of the long-horizon contract of queue benchmarks: a descriptor, then a line for each metric of a sample. */
import { readFileSync } from 'node:fs';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** The metrics of the contract; those of latency and rate cover the 5 s of a sample. */
const METRICS = {
  claim_p50_ms: 5,
  claim_p95_ms: 5,
  claim_p99_ms: 5,
  enqueue_rate: 5,
  completion_rate: 5,
  queue_depth: 0,
};

const line = (record) => `${JSON.stringify(record)}\n`;

export function descriptor(system, at = new Date()) {
  const own = { event_tables: [], extensions: [], version, schema_version: 'current', db_name: '' };
  return line({ kind: 'descriptor', system, ...own, started_at: at.toISOString() });
}

/** @param sample as `load.mjs` takes it */
export function lines(system, sample, at = new Date()) {
  const record = { t: at.toISOString(), system, kind: 'adapter', subject_kind: 'adapter', subject: '' };
  return Object.entries(METRICS)
    .filter(([metric]) => sample[metric] !== undefined)
    .map(([metric, window]) =>
      line({ ...record, metric, value: sample[metric], window_s: window, phase: sample.phase }),
    )
    .join('');
}
