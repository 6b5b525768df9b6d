/** A secret, the one time that it is shown. */
import { Code } from '../../components/json';

export function Secret({ text }: { text: string }) {
  return (
    <div class="card secret" role="status">
      <strong>Signing secret</strong>
      <Code text={text} label="secret" />
      <p class="faint">Copy it now: it is not shown again.</p>
    </div>
  );
}
