import { Placeholder } from '../placeholder';

export default function SchedulesPage() {
  return <Placeholder title="Schedules" icon="schedules" />;
}
