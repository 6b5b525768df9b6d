import { Placeholder } from '../placeholder';

export default function JobsPage() {
  return <Placeholder title="Jobs" icon="jobs" />;
}
