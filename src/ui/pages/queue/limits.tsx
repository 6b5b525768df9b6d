/** The keys that limit jobs of a queue. */
import { LimitKeys } from '../limits/keys';
import type { QueueTab } from './tab';

export function LimitsTab({ queue: { name } }: QueueTab) {
  return <LimitKeys queue={name} />;
}
