/** Whether a schedule fires. */
import type { CronStatus } from '../../../contract/cron';
import { Badge, type Tone } from '../../components/badge';
import type { IconName } from '../../components/icon';

const STATES: Readonly<Record<CronStatus['status'], readonly [Tone, IconName]>> = {
  active: ['green', 'play'],
  paused: ['amber', 'pause'],
  completed: ['neutral', 'check'],
};

export function ScheduleState({ of: { status } }: { of: CronStatus }) {
  const [tone, icon] = STATES[status];
  return (
    <Badge tone={tone} icon={icon}>
      {status}
    </Badge>
  );
}
