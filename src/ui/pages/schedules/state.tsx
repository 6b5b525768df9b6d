/** Whether a schedule fires. */
import { Badge, type Tone } from '../../components/badge';
import type { IconName } from '../../components/icon';
import type { Schedule } from './types';

const STATES: Readonly<Record<Schedule['status'], readonly [Tone, IconName]>> = {
  active: ['green', 'play'],
  paused: ['amber', 'pause'],
  completed: ['neutral', 'check'],
};

export function ScheduleState({ of: { status } }: { of: Schedule }) {
  const [tone, icon] = STATES[status];
  return (
    <Badge tone={tone} icon={icon}>
      {status}
    </Badge>
  );
}
