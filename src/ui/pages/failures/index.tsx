import { Placeholder } from '../placeholder';

export default function FailuresPage() {
  return <Placeholder title="Failures" icon="failures" />;
}
