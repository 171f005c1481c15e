;;; eglot.el --- The main job through a stock client  -*- lexical-binding: t; -*-

;; Emacs' eglot announces nothing, not even that it can show questions, and
;; still must be asked. Started by .ci/story in a small project.

;;; Code:
(package-initialize)
(require 'cl-lib)
(require 'eglot)

(defvar story-passed 0)
(defvar story-failed 0)
(defvar story-prompts nil "Prompts shown, newest first: text, choices, what is prefilled.")
(defvar story-pick nil "What the person picks: `prefilled' or a regexp.")

(defun story-check (what ok)
  "Count and tell whether WHAT is OK."
  (if ok (cl-incf story-passed) (cl-incf story-failed))
  (princ (format "%s %s\n" (if ok "ok  " "FAIL") what)))

(defun story-read (prompt choices &optional _predicate _match initial &rest _)
  "Answer PROMPT with one of CHOICES; INITIAL is what RET alone would give."
  (push (list (substring-no-properties prompt) choices initial) story-prompts)
  (if (eq story-pick 'prefilled)
      initial
    (cl-find-if (lambda (c) (string-match-p story-pick c)) choices)))

(defun story-escalate (server id)
  "Ask SERVER for more for the run ID and return the result."
  (jsonrpc-request server :requestEscalation
                   (list :runId id :sandboxPermissions "danger-full-access" :justification "the report goes beside the project")
                   :timeout 60))

(let* ((folder (file-name-as-directory (getenv "STORY_WORKSPACE")))
       (file (expand-file-name "eglot" (getenv "STORY_OUTSIDE")))
       (writes (list :command (format "printf wide > '%s'" file)))
       (eglot-sync-connect 20)
       (project-find-functions (list (lambda (_) (cons 'transient folder))))
       server result)
  (add-to-list 'eglot-server-programs `(text-mode . (,(getenv "CONFINE_BIN") "serve")))
  (cl-letf (((symbol-function 'completing-read) #'story-read))
    (with-current-buffer (find-file-noselect (expand-file-name "notes.txt" folder))
      (text-mode)
      (apply #'eglot (eglot--guess-contact))
      (setq server (eglot-current-server))

      (setq result (jsonrpc-request server :runCommand (append '(:runId "first") writes) :timeout 60))
      (story-check "a write outside is refused" (and (eq t (plist-get (plist-get result :sandbox) :denied)) (not (file-exists-p file))))

      (setq story-pick 'prefilled)
      (setq result (story-escalate server "first"))
      (story-check "RET alone refuses" (and (= 1 (length story-prompts)) (equal "refused" (plist-get result :status)) (not (file-exists-p file))))
      (story-check "the question names the file" (string-match-p (regexp-quote file) (car (car story-prompts))))

      (setq story-pick "\\bonce\\b")
      (jsonrpc-request server :runCommand (append '(:runId "second") writes) :timeout 60)
      (setq result (jsonrpc-request server :requestEscalation
                                    '(:runId "second" :sandboxPermissions "danger-full-access" :justification "asked for once more")
                                    :timeout 60))
      (story-check "allowed once, it runs" (and (equal 0 (plist-get result :exitCode)) (file-exists-p file)))
      (eglot-shutdown server))))
(princ (format "%d passed, %d failed\n" story-passed story-failed))
(kill-emacs (if (and (= story-failed 0) (> story-passed 0)) 0 1))
;;; eglot.el ends here
