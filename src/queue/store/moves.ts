import type { Outbox } from '../../durable/outbox';
import type { Override } from '../../rpc/operations';

/** The kind of these outbox messages. Their address is the key of the job, their data a {@link Move}. */
export const MOVE = 'move';

export interface Move {
  key: number;
  /** Names the decision for the target. */
  name: string;
  target: string;
  override: Override;
  /** When it was decided, epoch ms. */
  at: number;
}

export function moveOf(outbox: Outbox, key: number): Move | undefined {
  const data = outbox.find(MOVE, String(key));
  return data === undefined ? undefined : (JSON.parse(data) as Move);
}
