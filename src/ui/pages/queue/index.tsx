import { Placeholder } from '../placeholder';

export default function QueuePage() {
  return <Placeholder title="Queue" icon="queues" />;
}
