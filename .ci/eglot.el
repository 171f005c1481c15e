;;; eglot.el --- The main job through a stock client  -*- lexical-binding: t; -*-

;; Emacs' eglot announces nothing, not even that it can show questions, and
;; still must be asked. Started by .ci/story in a small project.

;;; Code:
(package-initialize)
(require 'cl-lib)
(require 'eglot)

(defvar story-passed 0)
(defvar story-failed 0)
;; Prompts are answered by `story-read' in the place of the person. Each entry:
;; text, choices, what is prefilled, whether FILE existed while it was shown.
(defvar story-prompts nil "Prompts shown, newest first.")
(defvar story-pick nil "What the person does: `prefilled', `quit' or a regexp.")
(defvar story-file nil "What the commands write, outside the workspace.")

(defun story-check (what ok)
  "Count and tell whether WHAT is OK."
  (if ok (cl-incf story-passed) (cl-incf story-failed))
  (princ (format "%s %s\n" (if ok "ok  " "FAIL") what)))

(defun story-read (prompt choices &optional _predicate _match initial &rest _)
  "Answer PROMPT with one of CHOICES; INITIAL is what RET alone would give."
  (push (list (substring-no-properties prompt) choices initial (file-exists-p story-file)) story-prompts)
  (pcase story-pick
    ('prefilled initial)
    ('quit (signal 'quit nil))
    (_ (cl-find-if (lambda (c) (string-match-p story-pick c)) choices))))

(defun story-ask (server method &rest params)
  "Send METHOD with PARAMS to SERVER and return the result."
  (jsonrpc-request server method params :timeout 60))

(defun story-writing (text)
  "A command that writes TEXT outside the workspace."
  (format "printf %s > '%s'" text story-file))

(defun story-run (server id &optional text)
  "Let SERVER run a command that writes TEXT as ID."
  (story-ask server :runCommand :runId id :command (story-writing (or text "wide"))))

(defun story-escalate (server id why)
  "Ask SERVER for more for the run ID because of WHY."
  (story-ask server :requestEscalation :runId id :sandboxPermissions "danger-full-access" :justification why))

(defun story-refused-p (result)
  "Whether RESULT says that the command did not run, and it did not."
  (and (equal "refused" (plist-get result :status)) (not (file-exists-p story-file))))

(defun story-denied-p (result)
  "Whether RESULT says that the sandbox refused the write, and it did."
  (and (eq t (plist-get (plist-get result :sandbox) :denied)) (not (file-exists-p story-file))))

(defun story-wait (server id)
  "Wait for the end of the run ID of SERVER and return its result.
An older jsonrpc.el leaves what comes together with an answer until there is
more, so this asks often."
  (let (result)
    (with-timeout (60)
      (while (equal "running" (plist-get (setq result (story-ask server :confine/runs/wait :runId id :timeoutMs 100)) :status))))
    result))

(defun story-questions (server)
  "Questions about what needs more: asked of the person, and obeyed."
  (story-check "a write outside is denied" (story-denied-p (story-run server "first")))
  (story-check "without a question" (null story-prompts))

  (setq story-pick 'prefilled)
  (story-check "RET alone refuses" (story-refused-p (story-escalate server "first" "the report goes beside the project")))
  (pcase-let ((`(,text ,choices ,initial ,existed) (car story-prompts)))
    (story-check "it was asked, once" (= 1 (length story-prompts)))
    (story-check "the question shows command, folder and reason"
                 (cl-every (lambda (part) (string-match-p (regexp-quote part) text))
                           (list story-file (directory-file-name default-directory) "the report goes beside the project")))
    (story-check "refusing is prefilled, and the first choice" (and (equal initial (car choices)) (string-match-p "\\`Refuse" initial)))
    (story-check "nothing ran before the answer" (not existed)))

  (setq story-pick "\\`Refuse")
  (story-check "no is obeyed" (story-refused-p (story-escalate server "first" "asked for once more")))

  (setq story-pick "\\bonce\\b")
  (let ((result (story-escalate server "first" "and once more")))
    (story-check "yes is obeyed" (and (equal 0 (plist-get result :exitCode)) (file-exists-p story-file)))
    (story-check "and it ran wider" (equal "danger-full-access" (plist-get (plist-get result :sandbox) :mode))))
  (story-check "each was asked" (= 3 (length story-prompts)))
  (delete-file story-file)
  (story-check "once is once: the next run is confined" (story-denied-p (story-run server "next")))

  ;; C-g leaves the filter that eglot shows the question in: it never answers,
  ;; and no answer is never a yes. A batch Emacs would end here but for the two variables.
  (setq story-pick 'quit)
  (let ((backtrace-on-error-noninteractive nil)
        (command-error-function #'ignore))
    (jsonrpc-async-request server :runCommand
                           (list :runId "quit" :command (story-writing "wide")
                                 :sandboxPermissions "danger-full-access" :justification "x"))
    (with-timeout (30)
      (while (< (length story-prompts) 4) (accept-process-output nil 0.1))))
  (story-check "C-g leaves it waiting" (and (= 4 (length story-prompts)) (not (file-exists-p story-file))
                                            (equal "running" (plist-get (story-ask server :confine/runs/wait :runId "quit" :timeoutMs 0) :status))))
  (story-ask server :confine/runs/kill :runId "quit")
  (story-check "and it never runs" (and (equal "cancelled" (plist-get (story-wait server "quit") :status)) (not (file-exists-p story-file)))))

(defun story-commands (server)
  "The same through workspace/executeCommand, which is all that some editors have."
  (story-run server "command" "more")
  (cl-flet ((execute (id why)
              (story-ask server :workspace/executeCommand :command "confine.server.escalate"
                         :arguments (vector (list :runId "command" :newRunId id :sandboxPermissions "danger-full-access" :justification why)))))
    (setq story-pick 'prefilled)
    (story-check "a command is answered with the id of its run" (equal "command-no" (plist-get (execute "command-no" "by command") :runId)))
    (story-check "RET alone refuses a command" (story-refused-p (story-wait server "command-no")))
    (setq story-pick "\\bonce\\b")
    (execute "command-yes" "by command, once more")
    (story-check "yes is obeyed for a command" (and (equal 0 (plist-get (story-wait server "command-yes") :exitCode)) (file-exists-p story-file)))
    (story-check "commands were asked about" (= 6 (length story-prompts)))))

(let* ((folder (file-name-as-directory (getenv "STORY_WORKSPACE")))
       (eglot-sync-connect 60)
       (project-find-functions (list (lambda (_) (cons 'transient folder)))))
  (setq story-file (expand-file-name "eglot" (getenv "STORY_OUTSIDE")))
  (add-to-list 'eglot-server-programs `(text-mode . (,(getenv "CONFINE_BIN") "serve")))
  (cl-letf (((symbol-function 'completing-read) #'story-read))
    (with-current-buffer (find-file-noselect (expand-file-name "notes.txt" folder))
      (text-mode)
      (apply #'eglot (eglot--guess-contact))
      (let ((server (eglot-current-server)))
        (story-questions server)
        (story-commands server)
        (eglot-shutdown server)))))
(princ (format "%d passed, %d failed\n" story-passed story-failed))
(kill-emacs (if (and (= story-failed 0) (> story-passed 0)) 0 1))
;;; eglot.el ends here
