import { Placeholder } from '../placeholder';

export default function WorkersPage() {
  return <Placeholder title="Workers" icon="workers" />;
}
