/** The defaults of five job systems, as layers that set every field but `table` and `non_retryable_errors`. */
import { DEFAULT_JITTER, type PresetName, type RetryPolicy } from './policy';

type Preset = Omit<RetryPolicy, 'table' | 'non_retryable_errors'>;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Open Job Spec: 3 runs, 1 s doubling up to 5 min. The base of every merge. */
const ojs: Preset = {
  max_attempts: 3,
  backoff_strategy: 'exponential',
  initial_interval: SECOND,
  backoff_coefficient: 2,
  first_index: 1,
  offset: 0,
  max_interval: 5 * MINUTE,
  jitter: DEFAULT_JITTER,
  on_exhaustion: 'discard',
  on_crash: 'retry',
};

/** zzz_jobs: 20 runs, 15 s doubling up to 1 h, and up to a quarter more that depends on the job alone. */
const zzz: Preset = {
  ...ojs,
  max_attempts: 20,
  initial_interval: 15 * SECOND,
  max_interval: HOUR,
  jitter: { kind: 'fraction', of: 0.25, deterministic: true },
  on_exhaustion: 'dead_letter',
};

/** ChasquiMQ: 3 runs, 100 ms doubling up to 30 s, give or take 100 ms; a crash is final. */
const chasqui: Preset = {
  ...ojs,
  initial_interval: 100,
  max_interval: 30 * SECOND,
  jitter: { kind: 'symmetric', amount: 100, deterministic: false },
  on_exhaustion: 'dead_letter',
  on_crash: 'dead_letter',
};

/** Zizq: 25 retries, n⁴ s + 15 s + n · [0, 30 s), no cap. */
const zizq: Preset = {
  ...ojs,
  max_attempts: 26,
  backoff_strategy: 'polynomial',
  backoff_coefficient: 4,
  offset: 15 * SECOND,
  max_interval: null,
  jitter: { kind: 'per_attempt', amount: 30 * SECOND, step: 0, deterministic: false },
  on_exhaustion: 'dead_letter',
};

/** Sidekiq: 25 retries, (n − 1)⁴ s + 15 s + n · (0 … 9 whole s), no cap. */
const sidekiq: Preset = {
  ...zizq,
  first_index: 0,
  jitter: { kind: 'per_attempt', amount: 10 * SECOND, step: SECOND, deterministic: false },
};

export const PRESETS: Readonly<Record<PresetName, Readonly<Preset>>> = { ojs, zzz, chasqui, zizq, sidekiq };
