import type { CronStatus } from '../../../contract/cron';
import { Badge, type Look } from '../../components/badge';

const STATES: Readonly<Record<CronStatus['status'], Look>> = {
  active: ['green', 'play'],
  paused: ['amber', 'pause'],
  completed: ['neutral', 'check'],
};

export const ScheduleState = ({ of: { status } }: { of: CronStatus }) => <Badge look={STATES[status]} text={status} />;
