import { Placeholder } from '../placeholder';

export default function JobPage() {
  return <Placeholder title="Job" icon="jobs" />;
}
