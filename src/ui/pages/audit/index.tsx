import { Placeholder } from '../placeholder';

export default function AuditPage() {
  return <Placeholder title="Audit" icon="audit" />;
}
