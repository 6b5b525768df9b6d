import type { ComponentChildren } from 'preact';
import type { JobState } from '../../job/states';
import { Icon, type IconName } from './icon';

export type Tone = 'neutral' | 'blue' | 'violet' | 'green' | 'amber' | 'red';

const STATES: Readonly<Record<JobState, Look>> = {
  pending: ['neutral', 'pause'],
  scheduled: ['neutral', 'waiting'],
  available: ['blue', 'available'],
  active: ['violet', 'active'],
  retryable: ['amber', 'retry'],
  completed: ['green', 'completed'],
  cancelled: ['neutral', 'cancelled'],
  discarded: ['red', 'discarded'],
};

export const JOB_STATES = Object.keys(STATES) as readonly JobState[];

export const toneOf = (state: string): Tone => STATES[state as JobState]?.[0] ?? 'neutral';

export type Look = readonly [tone: Tone, icon?: IconName | undefined];

export const GOOD: Look = ['green', 'completed'];
export const BAD: Look = ['red', 'discarded'];
const NEUTRAL: Look = ['neutral'];

export function StateBadge({ state }: { state: string }) {
  return <Badge look={STATES[state as JobState] ?? ['neutral', 'available']} text={state} />;
}

/** A word with a colour: the mode of a queue, the answer of a webhook. */
export const Badge = ({ look: [tone, icon] = NEUTRAL, text }: { look?: Look; text: ComponentChildren }) => (
  <span class={`badge ${tone}`}>
    {icon && <Icon name={icon} size={12} />}
    {text}
  </span>
);
